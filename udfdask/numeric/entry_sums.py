"""Adds up sparse frames: over the frames, or over the pixels of each."""

from __future__ import annotations

import numpy as np

from udfdask.numeric.compiled import kernel
from udfdask.numeric.entries import Entries
from udfdask.numeric.rows import MOST, wider
from udfdask.types import AnyArray

MANY = 4
"""Entries for each pixel from which it pays to add up in a narrow dtype first."""


def add_entries(entries: Entries, total: AnyArray) -> None:
    """Add all frames to `total`, shape `part`, contiguous.

    `total` is uint64, int64, float64 or complex128 as the kind of the data asks for.
    """
    narrow, flat = wider(entries.values.dtype), total.reshape(-1)
    few = len(entries.values) < MANY * len(flat)
    if few or narrow is None or narrow.itemsize >= flat.itemsize:
        _scatter(entries.pixels, entries.values, flat)
        return
    for some in entries.cut(MOST):  # half as many bytes are more likely in a cache
        sums = np.zeros(len(flat), narrow)
        _scatter(some.pixels, some.values, sums)
        flat += sums


def add_entries_inside(entries: Entries, inside: AnyArray, total: AnyArray) -> None:
    """Add the pixels of each frame that lie inside to `total`, shape (frames,).

    `inside` is flat, uint8; what lies outside is not read.
    """
    if len(entries.values):
        _gather(*entries, inside, total)


@kernel
def _scatter(pixels: AnyArray, values: AnyArray, total: AnyArray) -> None:
    """Add each value to its pixel."""
    for k in range(len(values)):
        total[pixels[k]] += values[k]


@kernel
def _gather(
    starts: AnyArray, pixels: AnyArray, values: AnyArray, inside: AnyArray, total: AnyArray
) -> None:
    """Add the values of each frame at pixels inside."""
    for f in range(len(total)):
        here, some = pixels[starts[f] : starts[f + 1]], values[starts[f] : starts[f + 1]]
        found = total[f]
        for k in range(len(some)):
            if inside[here[k]]:
                found += some[k]
        total[f] = found
