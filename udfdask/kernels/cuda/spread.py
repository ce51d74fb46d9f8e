"""Mean and squared deviations over some pixels of each frame, one signal part at a time."""

from __future__ import annotations

from typing import Any

from udfdask.kernels.cuda.sums import blocks_of
from udfdask.kernels.cuda.variance import squared


def add_spread(tile: Any, ys: Any, xs: Any, before: int, mean: Any, spread: Any) -> None:
    """Merge some pixels of a tile, shape (frames, y, x), into the moments of each frame.

    `mean` and `spread`, the sum of |value - mean|**2, have the shape (frames,) and describe the
    `before` pixels of each frame so far. They are merged by the formula of Chan, Golub and LeVeque.
    """
    n = int(ys.size)
    share = n / (before + n)
    for block, means, spreads in blocks_of(mean.itemsize, tile, mean, spread):
        values = block[:, ys, xs].astype(mean.dtype)
        new_means = values.mean(axis=1)
        squares = squared(values - new_means[:, None]).sum(axis=1)
        shift = new_means - means
        means[:] += shift * share
        spreads[:] += squares + squared(shift) * (before * share)
