"""Find detectors that miss or cut the beam, in the mean or the sum of all frames."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.fft import irfft2, next_fast_len, rfft2

from udfdask.types import AnyArray

_LARGEST_BEAM = 0.25
"""Largest part of a frame that is a beam; more bright pixels are a pattern without contrast."""


def beam_remark(mask: AnyArray, pattern: Any) -> str:
    """Return what is odd about a detector, in a few words; empty if nothing is.

    Bright pixels have at least half of the brightest value. A ring should not have some of them. A
    disk, or another mask without a hole, should have half of the counts that it has where it has
    most; a part of a ring at the border of the frame has no hole either, so that masks there are
    not judged. A single bright pixel is a broken one.
    """
    values = np.nan_to_num(np.asarray(pattern, np.float64), posinf=0, neginf=0).clip(min=0)
    if values.ndim != 2 or mask.shape != values.shape or not mask.any():
        return ""
    around = np.pad(values, 1)
    nearby = (around[:-2, 1:-1], around[2:, 1:-1], around[1:-1, :-2], around[1:-1, 2:])
    values = np.minimum(values, np.max(nearby, axis=0))
    bright = values >= values.max() / 2
    if bright.mean() > _LARGEST_BEAM:
        return ""
    y, x = (round(float(place.mean())) for place in np.nonzero(mask))
    if not mask[y, x]:
        inside = bright[mask]
        return "cuts the beam" if inside.any() and not inside.all() else ""
    if mask[1:-1, 1:-1].sum() < mask.sum():
        return ""
    sizes = [next_fast_len(2 * n - 1, real=True) for n in mask.shape]
    product = rfft2(values, sizes) * np.conj(rfft2(mask.astype(np.float64), sizes))
    share = values[mask].sum() / irfft2(product, sizes).max()
    return f"has {share:.0%} of the counts of the brightest place" if share < 1 / 2 else ""
