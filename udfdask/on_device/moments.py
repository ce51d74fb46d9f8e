"""Sums and sums of squared deviations from the mean, of tiles and of partial results."""

from __future__ import annotations

from typing import Any

from udfdask.on_device.blocks import blocks_of
from udfdask.on_device.squares import squared


def add_moments(tile: Any, before: int, total: Any, varsum: Any) -> None:
    """Merge the frames of a tile, shape (n, *part), into moments of `before` others.

    `total`, float64 or complex128, and `varsum`, float64, have shape `part`.
    """
    for block in blocks_of(tile, total.itemsize):
        count = block.shape[0]
        more = block.sum(axis=0, dtype=total.dtype)
        deviations = block.astype(total.dtype) - more / count
        merge_moments(before, total, varsum, count, more, squared(deviations).sum(axis=0))
        before += count


def merge_moments(
    before: int, total: Any, varsum: Any, count: int, more_total: Any, more_varsum: Any
) -> None:
    """Merge moments of `count` frames into those of `before` others; arrays as in add_moments."""
    if not count:
        return
    if before:
        apart = total / before - more_total / count
        varsum += squared(apart) * (before * count / (before + count))
    total += more_total
    varsum += more_varsum
