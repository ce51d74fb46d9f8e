"""NumPy's .npy files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np

from udfdask.errors import FileFormatError
from udfdask.io.damaged_files import COPY_AGAIN, check_values, existing_file, reading
from udfdask.io.file_identity import FileIdentity
from udfdask.io.lazy_source import choose_chunks, lazy_array
from udfdask.io.memmap import MappedArray
from udfdask.io.opened_file import OpenedFile, choose_sig_dims, name_axes

MAGIC = b"\x93NUMPY"
"""What .npy files begin with."""

_ADVICE = f"{COPY_AGAIN} as an array of numbers with numpy.save"


def open_npy(file: Path, *, sig_dims: int | None, chunks: Any) -> OpenedFile:
    """Take a .npy file; return it opened, its values mapped into memory task by task."""
    identity = FileIdentity.of(file)  # before looking inside: a change in between is noticed
    mapped = _mapped(file)
    source = MappedArray(
        file=identity,
        shape=mapped.shape,
        dtype=mapped.dtype,
        offset=mapped.offset,
        strides=mapped.strides,
    )
    sig = choose_sig_dims(sig_dims, mapped.ndim)
    array: da.Array = lazy_array(
        source, choose_chunks(source.shape, source.dtype, sig, chunks), prefix="from-npy"
    )
    return OpenedFile(
        array=array,
        sig_dims=sig,
        reader="NumPy",
        title=file.stem,
        axes=name_axes([None] * mapped.ndim, sig),
    )


def read_npy(path: str | os.PathLike[str]) -> np.ndarray[Any, Any]:
    """Take the path of a .npy file; return the array in it, read into memory."""
    return np.array(_mapped(existing_file(path)))


def _mapped(file: Path) -> np.memmap[Any, Any]:
    """Take a .npy file; return its array mapped into memory, or raise if it is not all there."""
    # A shape of damaged digits overflows before it is compared with the file.
    with np.errstate(over="ignore"), reading(file, "a .npy file", advice=_ADVICE):
        mapped = np.lib.format.open_memmap(file, mode="r")
    check_values(file, mapped.shape, mapped.dtype)
    end = mapped.offset + mapped.nbytes
    if file.stat().st_size < end:
        raise FileFormatError(
            f"{file} has {file.stat().st_size} bytes, and its header asks for {end}: "
            f"shape {mapped.shape} of {mapped.dtype}. {COPY_AGAIN}"
        )
    return mapped
