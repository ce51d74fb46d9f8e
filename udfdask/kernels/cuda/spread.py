"""Means and squared deviations over some pixels of each frame, frames in parts."""

from __future__ import annotations

from typing import Any

from udfdask.kernels.cuda.sums import blocks_of
from udfdask.kernels.cuda.variance import squared


def add_spread(tile: Any, ys: Any, xs: Any, before: int, mean: Any, spread: Any) -> None:
    """Take pixels of a tile, shape (frames, y, x), into the moments of each frame.

    ``mean`` and ``spread``, sum |value - mean|**2, have the shape (frames,) and stand for `before`
    pixels of each frame so far. They are combined as Chan, Golub and LeVeque do.
    """
    n = int(ys.size)
    share = n / (before + n)
    for block, means, spreads in blocks_of(mean.itemsize, tile, mean, spread):
        values = block[:, ys, xs].astype(mean.dtype)
        here = values.mean(axis=1)
        squares = squared(values - here[:, None]).sum(axis=1)
        shift = here - means
        means[:] += shift * share
        spreads[:] += squares + squared(shift) * (before * share)
