"""Means and squared deviations over some pixels of each frame, frames in parts."""

from __future__ import annotations

import numpy as np

from udfdask.kernels.cpu.compile import reordering_kernel
from udfdask.types import AnyArray


# sums in any order, which is what lets several elements be added at once
@reordering_kernel
def add_spread(
    tile: AnyArray, ys: AnyArray, xs: AnyArray, before: int, mean: AnyArray, spread: AnyArray
) -> None:
    """Take pixels of a tile, shape (frames, y, x), into the moments of each frame.

    ``mean`` and ``spread``, sum |value - mean|**2, have the shape (frames,) and stand for `before`
    pixels of each frame so far. They are combined as Chan, Golub and LeVeque do.
    """
    n = ys.size
    share = n / (before + n)
    values = np.empty(n, mean.dtype)
    for i in range(tile.shape[0]):
        for k in range(n):
            values[k] = tile[i, ys[k], xs[k]]
        here = values.sum() / n
        squares = 0.0
        for k in range(n):
            apart = values[k] - here
            squares += apart.real * apart.real + apart.imag * apart.imag
        shift = here - mean[i]
        mean[i] += shift * share
        spread[i] += squares + (shift.real * shift.real + shift.imag * shift.imag) * before * share
