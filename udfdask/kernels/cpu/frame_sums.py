"""Sum the frames of a tile."""

from __future__ import annotations

import numpy as np

from udfdask.kernels.cpu.column_sums import (
    MOST_EXACT,
    add_columns,
    add_columns_exactly,
    sum_columns,
)
from udfdask.kernels.cpu.rows import MOST, as_real, as_rows, wider
from udfdask.kernels.overflow import is_long, require
from udfdask.types import AnyArray

BLOCK = 1 << 14
"""Pixels at a time: their sums stay in a cache. With fewer, frames are not read sequentially."""

FEW = 256
"""Frames per intermediate sum, if values have the precision of the total."""


def add_frames(tile: AnyArray, total: AnyArray) -> None:
    """Add all frames of a tile, shape (n, *part), to `total`, shape `part`, contiguous.

    `total` is uint64, int64, float64 or complex128, according to the kind of the data; float64 is
    also possible for 64-bit integers. Raise if a sum of integers overflows. NumPy adds up dtypes
    that kernels do not support.
    """
    if not tile.size:
        return
    narrow = wider(tile.dtype)
    if narrow is None:
        total += np.add.reduce(tile.astype(total.dtype, copy=False), axis=0)
        return
    rows = as_rows(tile, keeps_half=True).as_real()
    target = as_real(total)
    block = min(BLOCK, rows.width)
    if rows.flat.dtype == target.dtype and is_long(target.dtype):
        for group in rows.cut(MOST_EXACT):
            require(add_columns_exactly(*group, block, target), target.dtype)
        return
    dtype = target.dtype if is_long(rows.flat.dtype) else narrow.type(0).real.dtype
    if dtype == target.dtype != rows.flat.dtype:
        add_columns(*rows, block, target)
        return
    sums = np.empty(block, dtype)
    # there is no wider dtype than double precision: sum in two steps, with smaller rounding errors
    for group in rows.cut(FEW if rows.flat.dtype == target.dtype else MOST):
        sum_columns(*group, sums, target)
