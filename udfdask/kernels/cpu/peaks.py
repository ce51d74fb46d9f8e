"""Find the maximum of each correlation map: its position, height and slope."""

from __future__ import annotations

import math

import numpy as np

from udfdask.kernels.cpu.compile import kernel, rounding_inner_kernel
from udfdask.types import AnyArray

REACH = 2
"""The centroid of a maximum includes this number of pixels on each side."""
NEAREST = 1.5
"""Smallest distance in pixels for the slope, because a maximum is flat on top."""


@kernel
def find_maxima(
    maps: AnyArray,
    corners: AnyArray,
    centers: AnyArray,
    refineds: AnyArray,
    heights: AnyArray,
    elevations: AnyArray,
) -> None:
    """Write position, centroid, height and slope of each map's maximum to the last four arrays.

    `maps` has the shape (n, k, side, side). `corners` holds the position (y, x) of the first
    pixel of each map, shape (n, k, 2), or (1, k, 2) if it is the same in all frames. `centers`
    and `refineds` have the shape (n, k, 2), `heights` and `elevations` (n, k).
    """
    n, k, side, _ = maps.shape
    for f in range(n):
        g = f if len(corners) > 1 else 0
        for p in range(k):
            one = maps[f, p]
            top, left = corners[g, p, 0], corners[g, p, 1]
            y, x = _highest(one)
            if y < 0:
                centers[f, p, 0], centers[f, p, 1] = top + side // 2, left + side // 2
                refineds[f, p, 0], refineds[f, p, 1] = np.nan, np.nan
                heights[f, p], elevations[f, p] = np.nan, np.nan
                continue
            fine_y, fine_x = _centroid(one, y, x)
            centers[f, p, 0], centers[f, p, 1] = top + y, left + x
            refineds[f, p, 0], refineds[f, p, 1] = top + fine_y, left + fine_x
            heights[f, p] = one[y, x]
            elevations[f, p] = _elevation(one, fine_y, fine_x, one[y, x])


@rounding_inner_kernel
def _highest(one: AnyArray) -> tuple[int, int]:
    """Return the first pixel with the largest value, (-1, -1) if not all values are finite."""
    y, x = 0, 0
    best = one[0, 0]
    for i in range(one.shape[0]):
        for j in range(one.shape[1]):
            if not math.isfinite(one[i, j]):
                return -1, -1
            if one[i, j] > best:
                y, x, best = i, j, one[i, j]
    return y, x


@rounding_inner_kernel
def _centroid(one: AnyArray, y: int, x: int) -> tuple[float, float]:
    """Return the centroid around a pixel, after subtracting the minimum of this region.

    Near the edge of the map, the region is smaller, but still symmetric.
    """
    reach = min(REACH, y, x, one.shape[0] - 1 - y, one.shape[1] - 1 - x)
    around = one[y - reach : y + reach + 1, x - reach : x + reach + 1]
    lowest = np.float64(around.min())
    total, moment_y, moment_x = 0.0, 0.0, 0.0
    for i in range(2 * reach + 1):
        for j in range(2 * reach + 1):
            weight = around[i, j] - lowest
            total += weight
            moment_y += weight * (i - reach)
            moment_x += weight * (j - reach)
    if total > 0:
        return y + moment_y / total, x + moment_x / total
    return float(y), float(x)


@rounding_inner_kernel
def _elevation(one: AnyArray, y: float, x: float, height: float) -> float:
    """Return the slope of the steepest cone above the map with its tip at (y, x, height)."""
    lowest = np.inf
    for i in range(one.shape[0]):
        for j in range(one.shape[1]):
            squared = (i - y) ** 2 + (j - x) ** 2
            if squared >= NEAREST**2:
                lowest = min(lowest, (height - one[i, j]) / math.sqrt(squared))
    return max(0.0, lowest)
