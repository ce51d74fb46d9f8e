"""Open NumPy's .npy files, which tasks map into memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from udfdask.io.file_identity import (
    COPY_AGAIN,
    FileIdentity,
    check_values,
    existing_file,
    reading,
)
from udfdask.io.memmap import MappedArray
from udfdask.io.opened_file import OpenedFile, open_source

MAGIC = b"\x93NUMPY"
"""First bytes of .npy files."""


def open_npy(file: Path, *, sig_dims: int | None, chunks: Any) -> OpenedFile:
    """Open a .npy file."""
    identity = FileIdentity.of(file)  # before the header is read, so that a change is noticed
    source = MappedArray.of(_mapped(file), identity)
    how: dict[str, Any] = {"sig_dims": sig_dims, "chunks": chunks}
    return open_source(source, prefix="from-npy", reader="NumPy", title=file.stem, **how)


def read_npy(path: str | os.PathLike[str]) -> np.ndarray[Any, Any]:
    """Return the array in a .npy file, read into memory."""
    return np.array(_mapped(existing_file(path)))


def _mapped(file: Path) -> np.memmap[Any, Any]:
    """Return the array in a .npy file, mapped into memory."""
    with reading(file, "a .npy file", advice=f"{COPY_AGAIN} with numpy.save"):
        mapped = np.lib.format.open_memmap(file, mode="r")
    check_values(str(file), mapped.shape, mapped.dtype)
    return mapped
