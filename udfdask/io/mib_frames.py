"""Find the frames in a .mib file, so that tasks map the file instead of calling HyperSpy."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np

from udfdask.graph.dask_internals.running import compute_here
from udfdask.io.damaged_files import reading
from udfdask.io.file_identity import FileIdentity
from udfdask.io.memmap import MappedArray, c_strides


def mapped_frames(array: da.Array, file: Path, identity: FileIdentity) -> MappedArray | None:
    """Return HyperSpy's lazy array of a .mib file as a part of that file; None if it is not one.

    HyperSpy's own chunks contain parts of all frames: a sum over them takes three times as long.
    """
    if file.suffix.lower() != ".mib" or array.ndim < 3 or 0 in array.shape:
        return None
    try:
        from rsciio.quantumdetector import load_mib_data
    except ImportError:  # RosettaSciIO before 0.2
        return None
    with reading(file, "a .mib file"):
        frames = load_mib_data(str(file), lazy=True)
    whole = frames
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    *nav, rows, columns = array.shape
    count = math.prod(nav)
    if frames.dtype != array.dtype or frames.shape[1:] != (rows, columns) or len(frames) < count:
        return None
    step, row, column = frames.strides
    # HyperSpy turns frames upside down, because the detector has its first row at the bottom
    last_row = (rows - 1) * row
    mapped = MappedArray(
        file=identity,
        shape=array.shape,
        dtype=array.dtype,
        offset=whole.offset + _address(frames) - _address(whole) + last_row,
        strides=(*c_strides(tuple(nav), step), -row, column),
    )
    ends = ((0,) * len(nav), (-1,) * len(nav))
    equal = all(np.array_equal(mapped[end], compute_here(array[end])) for end in ends)
    return mapped if equal else None


def _address(values: Any) -> int:
    """Return the position of the first value of an array in memory."""
    address: int = values.__array_interface__["data"][0]
    return address
