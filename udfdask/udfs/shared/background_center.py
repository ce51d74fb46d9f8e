"""Find the center of the background that is seen between the disks of a diffraction pattern."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from udfdask.types import AnyArray

GAP = 1 / 16
"""Size of the areas whose darkest quarter is background, as a part of the frame. Between 1/16 and
1/7, the centers of simulated tilted crystals were least wrong with it."""

DARK = 0.4
"""Pixels below this part of the background around them, in square roots, are a beam stop."""

FAINT = 1e-3
"""Part of the brightest value below which nothing can be called dark: it may be rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """What is seen between the disks of a pattern."""

    center: tuple[float, float]
    """Position (y, x) in pixels."""
    explained: float
    """Part of its differences that depend on the distance from the center, 0 to 1."""
    is_dark: AnyArray
    """Pixels that are much darker than the background at their distance, bool."""


def find_background(values: AnyArray, usable: AnyArray) -> Background | None:
    """Return where the background of a pattern has its center; None for a tiny or flat one.

    Around it, the brightness in each ring is nearest to the median of the ring. Disks that are
    left, and a beam stop, are outliers that a median does not see.
    """
    from scipy.ndimage import (
        binary_opening,
        distance_transform_edt,
        gaussian_filter,
        percentile_filter,
    )

    step = max(max(values.shape) // 32, 1)
    if min(values.shape) < 16:
        return None
    nearest = distance_transform_edt(~usable, return_distances=False, return_indices=True)
    size = 2 * max(round(GAP * max(values.shape) / 2), 1) + 1
    low = percentile_filter(values[tuple(nearest)], 25, size=size, mode="nearest")
    low = gaussian_filter(low, size / 8, mode="nearest")
    places = np.argwhere(usable[step // 2 :: step, step // 2 :: step]) * step + step // 2
    samples = low[tuple(places.T)]
    constant = float(np.abs(samples - np.median(samples)).sum())
    if not constant > 1e-9 * np.ptp(values):
        return None
    center, least = (0.0, 0.0), math.inf
    tried, reach = places.astype(np.float64), float(step)
    while reach >= 0.25:
        wrong = [_from_medians(samples, places, one, step / 2) for one in tried]
        best = int(np.argmin(wrong))
        if wrong[best] < least:
            center, least = (float(tried[best, 0]), float(tried[best, 1])), wrong[best]
        tried = center + reach * (np.argwhere(np.ones((3, 3))) - 1.0)
        reach /= 2
    if min(min(c, n - 1 - c) for c, n in zip(center, values.shape, strict=True)) < step:
        return None  # it only becomes brighter toward a border
    rings, medians = _rings(low[usable], np.argwhere(usable), center, step / 2)
    # a beam stop hides the middle, where a background is brightest
    profile = np.maximum.accumulate(medians[::-1])[::-1]
    profile[profile < FAINT * values.max()] = 0
    is_dark = np.zeros(values.shape, bool)
    is_dark[usable] = values[usable] < DARK * profile[rings]
    is_dark = binary_opening(is_dark, np.ones((step + 1, step + 1)))
    return Background(center=center, explained=1 - least / constant, is_dark=is_dark)


def _rings(
    samples: AnyArray, places: AnyArray, center: AnyArray | tuple[float, float], width: float
) -> tuple[AnyArray, AnyArray]:
    """Return the ring around a center in which each sample lies, and the median of each ring."""
    y, x = places.T
    rings = (np.hypot(y - center[0], x - center[1]) / width + 0.5).astype(np.int16)
    order = np.lexsort((samples, rings))
    number = np.bincount(rings)
    middle = np.cumsum(number) - number // 2 - 1
    return rings, samples[order[np.clip(middle, 0, None)]] * (number > 0)


def _from_medians(samples: AnyArray, places: AnyArray, center: AnyArray, width: float) -> float:
    rings, medians = _rings(samples, places, center, width)
    return float(np.abs(samples - medians[rings]).sum())
