"""Open raw CSR files by their description in TOML, the format of LiberTEM's ``raw_csr``."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from udfdask.errors import ArgumentTypeError, ArgumentValueError, FileFormatError
from udfdask.io.damaged_files import reading
from udfdask.io.opened_file import OpenedFile, choose_sig_dims, opened_array
from udfdask.io.raw_csr import csr_array, describe_csr

PARTS = ("indptr", "indices", "data")


def open_csr_toml(file: Path, *, sig_dims: int | None, chunks: Any) -> OpenedFile:
    """Open raw CSR files by the TOML file that describes them."""
    params, files = _tables(file)
    paths = [file.parent / _text(files, f"{part}_file", file) for part in PARTS]
    dtypes = [_text(files, f"{part}_dtype", file) for part in PARTS]
    shapes = {name: _value(params, name, file) for name in ("sig_shape", "nav_shape")}
    try:
        source = describe_csr(paths, dtypes, **shapes)
    except (ArgumentTypeError, ArgumentValueError) as error:
        # These values are not the user's arguments, but come from the file.
        raise FileFormatError(f"{file} does not describe raw CSR files: {error}") from error
    array = csr_array(source, "auto" if chunks is None else chunks)
    sig = choose_sig_dims(sig_dims, array.ndim, known=source.sig_dims)
    return opened_array(array, sig, reader="raw CSR", title=file.stem)


def _tables(file: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the tables of a TOML file that describe the scan and the files."""
    with reading(file, "TOML"), file.open("rb") as stream:
        content = tomllib.load(stream)
    params = _value(content, "params", file)
    kind = str(_value(params, "filetype", file))
    if kind.lower() != "raw_csr":
        raise FileFormatError(
            f"{file} describes data of type {kind!r}, but a TOML file must have "
            'filetype = "raw_csr": pass the file with the data itself'
        )
    return params, _value(content, kind, file)


def _text(table: Any, key: str, file: Path) -> str:
    """Return the text of a key in a table of the file; raise if there is none."""
    value = _value(table, key, file)
    if not isinstance(value, str) or not value:
        raise FileFormatError(
            f"{file} has {value!r} for {key!r}: expected the name of a file or type, such as "
            'data_file = "data.raw" and data_dtype = "<u2"'
        )
    return value


def _value(table: Any, key: str, file: Path) -> Any:
    """Return the value of a key in a table of the file; raise if there is none."""
    if not isinstance(table, dict) or key not in table:
        raise FileFormatError(
            f"{file} has no {key!r}: the table [params] needs filetype, nav_shape and "
            "sig_shape, and [raw_csr] a file and a dtype for each of indptr, indices and data, "
            'such as data_file = "data.raw" and data_dtype = "<u2"'
        )
    return table[key]
