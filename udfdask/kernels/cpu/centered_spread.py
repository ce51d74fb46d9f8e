"""Mean and squared deviations over a ring around a center of its own for each frame."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from udfdask.kernels.cpu.centered_moments import squares
from udfdask.kernels.cpu.compile import reordering_kernel
from udfdask.kernels.cpu.ellipses import is_between, nearer_columns, nearer_rows
from udfdask.types import AnyArray


def add_spread_about(
    tile: AnyArray,
    origin: tuple[int, ...],
    centers: AnyArray,
    matrix: tuple[float, float, float],
    radii: tuple[float | None, float],
    pixels: AnyArray,
    mean: AnyArray,
    spread: AnyArray,
) -> None:
    """Merge the pixels of a tile in a ring into the moments of each frame.

    `pixels`, float64, counts the pixels of each frame so far, `mean` and `spread` are those of
    `add_spread`, the other arguments those of `add_moments_about`. If a center is not finite, the
    spread of its frame becomes NaN.
    """
    values = np.empty(tile.shape[1] * tile.shape[2], mean.dtype)
    radii_squared = squares(*radii)
    _add(tile, *origin, centers, matrix, *radii_squared, values, pixels, mean, spread)


@reordering_kernel
def _add(
    tile: Any,
    top: int,
    left: int,
    centers: Any,
    matrix: Any,
    inner: float,
    outer: float,
    values: Any,
    pixels: Any,
    mean: Any,
    spread: Any,
) -> None:
    """Merge the pixels of all frames; `values` is a buffer for the pixels of one frame."""
    reach = math.sqrt(outer) + 2
    for f in range(tile.shape[0]):
        cy, cx = centers[f, 0], centers[f, 1]
        if not (math.isfinite(cy) and math.isfinite(cx)):
            spread[f] = math.nan
            continue
        n = 0
        first_row, last_row = nearer_rows(cy - top, matrix, reach, tile.shape[1])
        for row in range(first_row, last_row):
            dy = np.float64(top + row) - cy
            start, stop = nearer_columns(dy, cx - left, matrix, reach, tile.shape[2])
            for column in range(start, stop):
                dx = np.float64(left + column) - cx
                if is_between(dy, dx, matrix, inner, outer):
                    values[n] = tile[f, row, column]
                    n += 1
        if n == 0:
            continue
        new_mean = values[:n].sum() / n
        squared = 0.0
        for k in range(n):
            deviation = values[k] - new_mean
            squared += deviation.real * deviation.real + deviation.imag * deviation.imag
        before = pixels[f]
        share = n / (before + n)
        shift = new_mean - mean[f]
        mean[f] += shift * share
        spread[f] += squared + (shift.real * shift.real + shift.imag * shift.imag) * before * share
        pixels[f] = before + n
