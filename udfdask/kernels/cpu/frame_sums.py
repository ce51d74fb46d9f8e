"""Adds up the frames of a tile."""

from __future__ import annotations

import numpy as np

from udfdask.kernels.cpu.column_sums import (
    TOGETHER,
    add_columns,
    add_columns_exactly,
    sum_columns,
)
from udfdask.kernels.cpu.rows import MOST, as_real, as_rows, wider
from udfdask.kernels.overflow import is_long, require
from udfdask.types import AnyArray

BLOCK = 1 << 14
"""Pixels whose sums are held in a cache at a time: few, and the frames are not read in order."""

FEW = 256
"""Frames whose values are added up by themselves where they are as precise as the total."""


def add_frames(tile: AnyArray, total: AnyArray) -> None:
    """Add all frames of a tile, shape (n, *part), to `total`, shape `part`, contiguous.

    `total` is uint64, int64, float64 or complex128 as the kind of the data asks for, or float64 for
    integers of 64 bits; dtypes that kernels do not know are added up by NumPy. Raise if a sum of
    integers does not fit.
    """
    if not tile.size:
        return
    narrow = wider(tile.dtype)
    if narrow is None:
        total += np.add.reduce(tile.astype(total.dtype, copy=False), axis=0)
        return
    rows = as_rows(tile).as_real()
    target = as_real(total)
    block = min(BLOCK, rows.width)
    if rows.flat.dtype == target.dtype and is_long(target.dtype):
        for some in rows.cut(TOGETHER):
            require(add_columns_exactly(*some, block, target), target.dtype)
        return
    dtype = target.dtype if is_long(rows.flat.dtype) else narrow.type(0).real.dtype
    if dtype == target.dtype != rows.flat.dtype:
        add_columns(*rows, block, target)
        return
    sums = np.empty(block, dtype)
    # double precision in two steps, as there is nothing wider
    for some in rows.cut(FEW if rows.flat.dtype == target.dtype else MOST):
        sum_columns(*some, sums, target)
