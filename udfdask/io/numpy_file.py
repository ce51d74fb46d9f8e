"""Open NumPy's .npy files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from udfdask.io.damaged_files import COPY_AGAIN, check_values, existing_file, reading
from udfdask.io.file_identity import FileIdentity
from udfdask.io.memmap import MappedArray
from udfdask.io.opened_file import OpenedFile, open_source

MAGIC = b"\x93NUMPY"
"""First bytes of .npy files."""


def open_npy(file: Path, *, sig_dims: int | None, chunks: Any) -> OpenedFile:
    """Open a .npy file; each task maps it into memory."""
    identity = FileIdentity.of(file)  # before the header is read, so that a change is noticed
    mapped = _mapped(file)
    source = MappedArray(
        file=identity,
        shape=mapped.shape,
        dtype=mapped.dtype,
        offset=mapped.offset,
        strides=mapped.strides,
    )
    return open_source(
        source,
        sig_dims=sig_dims,
        chunks=chunks,
        prefix="from-npy",
        reader="NumPy",
        title=file.stem,
    )


def read_npy(path: str | os.PathLike[str]) -> np.ndarray[Any, Any]:
    """Return the array in a .npy file, read into memory."""
    return np.array(_mapped(existing_file(path)))


def _mapped(file: Path) -> np.memmap[Any, Any]:
    """Return the array in a .npy file, mapped into memory."""
    with reading(file, "a .npy file", advice=f"{COPY_AGAIN} with numpy.save"):
        mapped = np.lib.format.open_memmap(file, mode="r")
    check_values(file, mapped.shape, mapped.dtype)
    return mapped
