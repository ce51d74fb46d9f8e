"""NumPy's .npy files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np

from udfdask.errors import FileFormatError
from udfdask.io.identity import FileIdentity
from udfdask.io.mapped import MappedArray
from udfdask.io.opened import OpenedFile, choose_sig_dims, name_axes
from udfdask.io.source import choose_chunks, lazy_array


def open_npy(file: Path, *, sig_dims: int | None, chunks: Any) -> OpenedFile:
    """Take a .npy file; return it opened, its values mapped into memory task by task."""
    identity = FileIdentity.of(file)  # before looking inside: a change in between is noticed
    try:
        mapped = np.lib.format.open_memmap(file, mode="r")
    except (ValueError, OSError, EOFError) as error:
        raise FileFormatError(
            f"{file.name} cannot be mapped as a .npy file ({error}): save an array of "
            "numbers with numpy.save"
        ) from error
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
