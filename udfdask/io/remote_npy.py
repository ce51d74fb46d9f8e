"""Open NumPy's .npy files on servers."""

from __future__ import annotations

import math
from io import BytesIO
from typing import Any

import numpy as np

from udfdask.errors import FileFormatError
from udfdask.io.damaged_files import COPY_AGAIN, check_values, reading
from udfdask.io.memmap import c_strides
from udfdask.io.opened_file import OpenedFile, open_source
from udfdask.io.remote_file import RangedArray, RemoteFile
from udfdask.io.remote_location import Location

_MOST_HEADER = 1 << 14
"""Bytes that contain a whole header: NumPy reads at most 10,000 characters."""

_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
"""Readers of headers by version; version 3 is for structured arrays, which contain no frames."""


def open_remote_npy(location: Location, *, sig_dims: int | None, chunks: Any) -> OpenedFile:
    """Open a .npy file on a server; each task reads its own byte ranges."""
    file = RemoteFile.of(location)  # before the header is read, so that a change is noticed
    shown = location.shown
    begin = BytesIO(file.begin(_MOST_HEADER))
    with np.errstate(over="ignore"), reading(shown, "a .npy file"):
        version = np.lib.format.read_magic(begin)
        if version not in _HEADERS:
            raise FileFormatError(
                f"{shown} is a .npy file of version {version}, which cannot contain frames: write "
                "the numbers to a separate file"
            )
        shape, fortran_order, dtype = _HEADERS[version](begin)
    check_values(shown, shape, dtype)
    end = begin.tell() + math.prod(shape) * dtype.itemsize
    if file.size < end:
        raise FileFormatError(
            f"{shown} has {file.size} bytes, but its header requires {end}: shape {shape} of "
            f"{dtype}. {COPY_AGAIN}"
        )
    strides = c_strides(shape[::-1] if fortran_order else shape, dtype.itemsize)
    source = RangedArray(
        file=file,
        shape=shape,
        dtype=dtype,
        offset=begin.tell(),
        strides=strides[::-1] if fortran_order else strides,
    )
    return open_source(
        source,
        sig_dims=sig_dims,
        chunks=chunks,
        prefix="from-npy",
        reader="NumPy, by byte ranges",
        title=location.title,
    )
