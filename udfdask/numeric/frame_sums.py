"""Adds up the frames of a tile."""

from __future__ import annotations

import numpy as np

from udfdask.numeric.columns import sum_columns
from udfdask.numeric.rows import MOST, as_real, as_rows, wider
from udfdask.types import AnyArray

BLOCK = 4096
"""Pixels whose sums are held in the nearest cache at a time."""


def add_frames(tile: AnyArray, total: AnyArray) -> None:
    """Add all frames of a tile, shape (n, *part), to `total`, shape `part`, contiguous.

    `total` is uint64, int64, float64 or complex128 as the kind of the data asks for; dtypes that
    kernels do not know are added up by NumPy.
    """
    if not tile.size:
        return
    narrow = wider(tile.dtype)
    if narrow is None:
        total += np.add.reduce(tile.astype(total.dtype, copy=False), axis=0)
        return
    rows = as_rows(tile).as_real()
    sums = np.empty(min(BLOCK, rows.width), narrow.type(0).real.dtype)
    target = as_real(total)
    for some in rows.cut(MOST):
        sum_columns(*some, sums, target)
