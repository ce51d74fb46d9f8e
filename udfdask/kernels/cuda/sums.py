"""Sums over frames and over pixels: the values are widened as they are read."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.arrays.backends.device import array_module
from udfdask.kernels.cuda.blocks import blocks_of
from udfdask.kernels.overflow import add_exactly, is_long, require_near


def add_frames(tile: Any, total: Any) -> None:
    """Add the frames of a tile, shape (n, *part), to `total`, shape `part`, in its dtype."""
    _add(tile.dtype, total, _sum(tile, 0, total.dtype))


def add_pixels(tile: Any, sums: Any) -> None:
    """Add the pixels of each frame of a tile, shape (n, *part), to `sums`, shape (n,)."""
    _add(tile.dtype, sums, _sum(tile, tuple(range(1, tile.ndim)), sums.dtype))


def add_within(tile: Any, mask: Any, sums: Any) -> None:
    """Add the pixels of each frame of a tile within a mask, shape `part`, to `sums`, shape (n,).

    Pixels outside do not count, NaN neither. Floats are added up in double precision.
    """
    xp, axes, first = array_module(tile), tuple(range(1, tile.ndim)), 0
    wide = np.result_type(sums.dtype, np.float64) if sums.dtype.kind in "fc" else sums.dtype
    for block in blocks_of(tile, tile.itemsize):
        inside = xp.where(mask, block, tile.dtype.type(0))
        rows = sums[first : first + block.shape[0]]
        _add(tile.dtype, rows, _sum(inside, axes, wide).astype(sums.dtype, copy=False))
        first += block.shape[0]


def _add(values: Any, total: Any, more: Any) -> None:
    """Add sums of values of a dtype to others; raise if 64-bit integers do not fit them.

    The plan has made sure that sums of narrower ones do; a look at them would wait for the device.
    """
    if is_long(values):
        add_exactly(total, more)
    else:
        total += more


def _sum(tile: Any, axes: Any, dtype: Any) -> Any:
    """Return a sum in a dtype; raise if integers do not fit it."""
    found = tile.sum(axis=axes, dtype=dtype)
    if is_long(tile.dtype) and is_long(dtype):
        require_near(found, tile.sum(axis=axes, dtype=np.float64))
    return found
