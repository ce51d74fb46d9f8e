"""A tile as kernels take it: one flat stretch of memory, in which rows of pixels are contiguous."""

from __future__ import annotations

import numpy as np

from udfdask.types import AnyArray


def rows_in_memory(tile: AnyArray) -> tuple[AnyArray, int, int]:
    """Return a tile as flat memory, and the steps in it from frame to frame and from row to row.

    `tile` has the shape (frames, height, width) and is not empty; what is returned is read-only and
    of a dtype that kernels take: bool comes as uint8, half and extended precision as float64. It is
    copied only for that, and where a row of pixels is not contiguous.
    """
    if tile.dtype == np.bool_:
        tile = tile.view(np.uint8)
    elif tile.dtype.kind == "f" and tile.dtype.itemsize not in (4, 8):
        tile = tile.astype(np.float64)
    size = tile.dtype.itemsize
    frame, row, pixel = tile.strides
    steady = pixel == size or tile.shape[2] == 1
    if not (steady and tile.flags.aligned and frame >= 0 <= row and not (frame | row) % size):
        tile = np.ascontiguousarray(tile)
        frame, row, _ = tile.strides
    n, height, width = tile.shape
    length = ((n - 1) * frame + (height - 1) * row) // size + width
    flat = np.lib.stride_tricks.as_strided(tile, (length,), (size,), writeable=False)
    return flat, frame // size, row // size
