"""Mean and squared deviations over some pixels of each frame, one signal part at a time."""

from __future__ import annotations

import numpy as np

from udfdask.kernels.cpu.compile import reordering_kernel
from udfdask.types import AnyArray


# additions in any order, so that several elements are added at once
@reordering_kernel
def add_spread(
    tile: AnyArray, ys: AnyArray, xs: AnyArray, before: int, mean: AnyArray, spread: AnyArray
) -> None:
    """Merge some pixels of a tile, shape (frames, y, x), into the moments of each frame.

    `mean` and `spread`, the sum of |value - mean|**2, have the shape (frames,) and describe the
    `before` pixels of each frame so far. They are merged by the formula of Chan, Golub and LeVeque.
    """
    n = ys.size
    share = n / (before + n)
    values = np.empty(n, mean.dtype)
    for i in range(tile.shape[0]):
        for k in range(n):
            values[k] = tile[i, ys[k], xs[k]]
        new_mean = values.sum() / n
        squares = 0.0
        for k in range(n):
            deviation = values[k] - new_mean
            squares += deviation.real * deviation.real + deviation.imag * deviation.imag
        shift = new_mean - mean[i]
        mean[i] += shift * share
        spread[i] += squares + (shift.real * shift.real + shift.imag * shift.imag) * before * share
