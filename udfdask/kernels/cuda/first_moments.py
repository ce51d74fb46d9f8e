"""Sums and first moments of the pixels of frames within a mask."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.arrays.backends.device import array_module
from udfdask.kernels.cuda.blocks import blocks_of


def add_first_moments(tile: Any, mask: Any | None, origin: tuple[int, ...], out: Any) -> None:
    """Add sum(I), sum(y * I) and sum(x * I) within a mask to `out`, shape (frames, 3), float64.

    `tile` has shape (frames, ny, nx) and lies at `origin` (y, x) of the frame, `mask`, shape
    (ny, nx), is what of the mask lies there, None if all pixels count. Others do not, NaN neither.
    Sums of integers of up to 16 bits are exact.
    """
    xp = array_module(tile)
    _, ny, nx = tile.shape
    ys, xs = (xp.arange(o, o + n, dtype=np.float64) for o, n in zip(origin, (ny, nx), strict=True))
    first = 0
    for block in blocks_of(tile, tile.itemsize):
        within = block if mask is None else xp.where(mask, block, tile.dtype.type(0))
        lines = within.sum(axis=2, dtype=np.float64)
        columns = within.sum(axis=1, dtype=np.float64)
        rows = out[first : first + block.shape[0]]
        rows[:, 0] += lines.sum(axis=1)
        rows[:, 1] += (lines * ys).sum(axis=1)
        rows[:, 2] += (columns * xs).sum(axis=1)
        first += block.shape[0]
