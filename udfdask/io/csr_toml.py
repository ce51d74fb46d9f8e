"""Descriptions of raw CSR files in TOML, as LiberTEM's data sets of type ``raw_csr`` have them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from udfdask.errors import ArgumentTypeError, ArgumentValueError, FileFormatError
from udfdask.io.damaged_files import reading
from udfdask.io.opened_file import OpenedFile, choose_sig_dims, name_axes
from udfdask.io.raw_csr import csr_array, describe_csr

PARTS = ("indptr", "indices", "data")


def open_csr_toml(file: Path, *, sig_dims: int | None, chunks: Any) -> OpenedFile:
    """Take a description of raw CSR files; return them opened."""
    params, files = _tables(file)
    paths = [file.parent / _text(files, f"{part}_file", file) for part in PARTS]
    indptr_dtype, indices_dtype, dtype = (_text(files, f"{part}_dtype", file) for part in PARTS)
    sig_shape = _value(params, "sig_shape", file)
    nav_shape = _value(params, "nav_shape", file)
    try:
        source = describe_csr(
            *paths,
            nav_shape=nav_shape,
            sig_shape=sig_shape,
            indptr_dtype=indptr_dtype,
            indices_dtype=indices_dtype,
            dtype=dtype,
        )
    except (ArgumentTypeError, ArgumentValueError) as error:
        # Mistakes in the arguments are the user's there, but here the file's.
        raise FileFormatError(f"{file} does not describe raw CSR files: {error}") from error
    array = csr_array(source, "auto" if chunks is None else chunks)
    sig = choose_sig_dims(
        sig_dims, array.ndim, known=len(sig_shape) if isinstance(sig_shape, list) else 1
    )
    return OpenedFile(
        array=array,
        sig_dims=sig,
        reader="raw CSR",
        title=file.stem,
        axes=name_axes([None] * array.ndim, sig),
    )


def _tables(file: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Take a TOML file; return what it says of the scan and of the files."""
    with reading(file, "TOML"), file.open("rb") as stream:
        described = tomllib.load(stream)
    params = _value(described, "params", file)
    kind = str(_value(params, "filetype", file))
    if kind.lower() != "raw_csr":
        raise FileFormatError(
            f"{file} describes data of type {kind!r}; of TOML files, only those with "
            'filetype = "raw_csr" can be opened'
        )
    return params, _value(described, kind, file)


def _text(table: Any, key: str, file: Path) -> str:
    """Take a table out of a file and a key; return the text there, or raise."""
    value = _value(table, key, file)
    if not isinstance(value, str) or not value:
        raise FileFormatError(
            f"{file} has {value!r} for {key!r}: the name of a file or type was expected, such as "
            'data_file = "data.raw" and data_dtype = "<u2"'
        )
    return value


def _value(table: Any, key: str, file: Path) -> Any:
    """Take a table out of a file and a key; return its value, or raise if there is none."""
    if not isinstance(table, dict) or key not in table:
        raise FileFormatError(
            f"{file} has no {key!r}: the table [params] needs filetype, nav_shape and "
            "sig_shape, and [raw_csr] a file and a dtype for each of indptr, indices and data, "
            'such as data_file = "data.raw" and data_dtype = "<u2"'
        )
    return table[key]
