"""Descriptions of raw CSR files in TOML, as LiberTEM's data sets of type ``raw_csr`` have them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from udfdask.errors import FileFormatError
from udfdask.io.opened import OpenedFile, choose_sig_dims, name_axes
from udfdask.io.raw_csr import from_raw_csr

PARTS = ("indptr", "indices", "data")


def open_csr_toml(file: Path, *, sig_dims: int | None, chunks: Any) -> OpenedFile:
    """Take a description of raw CSR files; return them opened."""
    params, files = _tables(file)
    paths = [file.parent / _value(files, f"{part}_file", file) for part in PARTS]
    indptr_dtype, indices_dtype, dtype = (_value(files, f"{part}_dtype", file) for part in PARTS)
    sig_shape = _value(params, "sig_shape", file)
    array = from_raw_csr(
        *paths,
        nav_shape=_value(params, "nav_shape", file),
        sig_shape=sig_shape,
        indptr_dtype=indptr_dtype,
        indices_dtype=indices_dtype,
        dtype=dtype,
        chunks="auto" if chunks is None else chunks,
    )
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
    try:
        with file.open("rb") as stream:
            described = tomllib.load(stream)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{file.name} cannot be read as TOML: {error}") from error
    params = _value(described, "params", file)
    kind = str(_value(params, "filetype", file))
    if kind.lower() != "raw_csr":
        raise FileFormatError(
            f"{file.name} describes data of type {kind!r}; of TOML files, only those with "
            'filetype = "raw_csr" can be opened'
        )
    return params, _value(described, kind, file)


def _value(table: Any, key: str, file: Path) -> Any:
    """Take a table out of a file and a key; return its value, or raise if there is none."""
    if not isinstance(table, dict) or key not in table:
        raise FileFormatError(
            f"{file.name} has no {key!r}: the table [params] needs filetype, nav_shape and "
            "sig_shape, and [raw_csr] a file and a dtype for each of indptr, indices and data, "
            'such as data_file = "data.raw" and data_dtype = "<u2"'
        )
    return table[key]
