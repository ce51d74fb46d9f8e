"""Sums and squared deviations from the mean of sparse frames; unstored values count as 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.kernels.cpu.compile import contracting_kernel, kernel
from udfdask.kernels.cpu.exact_squares import MOST_SQUARES
from udfdask.kernels.cpu.sparse_entries import Entries
from udfdask.kernels.cpu.variance import merge_moments
from udfdask.kernels.moment_arrays import LARGEST_ORIGIN, Moments
from udfdask.types import AnyArray

FEWEST_BYTES = 2
"""Largest size of integers whose squares are added up, which is exact."""


def add_entry_moments(entries: Entries, before: int, moments: Moments) -> None:
    """Merge sparse frames into the moments of `before` other frames."""
    values = entries.values
    exact = values.dtype.kind in "iu" and values.itemsize <= FEWEST_BYTES
    for group in entries.cut(MOST_SQUARES):
        if not group.frames:
            continue
        more = Moments(*(np.zeros_like(part) for part in moments))
        origin, excess, squares = (part.reshape(-1) for part in more)
        if exact:
            both = np.zeros((len(squares), 2), np.int64)
            _square(group.pixels, group.values, both)
            _finish_squares(both, group.frames, excess, squares)
        else:
            _deviate(group.pixels, group.values, group.frames, origin, excess, squares)
        merge_moments(before, moments, group.frames, more)
        before += group.frames


@kernel
def _square(pixels: AnyArray, values: AnyArray, both: AnyArray) -> None:
    """Add values and their squares, which are next to each other in `both`, shape (pixels, 2)."""
    for k in range(len(values)):
        x = np.int64(values[k])
        p = pixels[k]
        both[p, 0] += x
        both[p, 1] += x * x


@kernel
def _finish_squares(both: AnyArray, count: int, sums: Any, squares: AnyArray) -> None:
    """Convert sums of squares of at most 32768 frames to sums of squared deviations."""
    each = 1.0 / count
    for p in range(len(squares)):
        s = both[p, 0]
        sums[p] = s
        # n * sum(x**2) and sum(x)**2 are below 2**62: every step but the last is exact
        squares[p] = np.float64(both[p, 1] * count - s * s) * each


@contracting_kernel
def _deviate(
    pixels: AnyArray, values: AnyArray, count: int, origin: Any, excess: Any, squares: AnyArray
) -> None:
    """Use the mean as the origin, then add the deviations from it; unstored values count as 0.

    The arrays must be 0 at first. The excess is the effect of rounding the mean.
    """
    zeros = np.full(len(origin), count)
    for k in range(len(values)):
        p = pixels[k]
        origin[p] += values[k]
        zeros[p] -= 1
    for p in range(len(origin)):
        mean = origin[p] / count
        origin[p] = mean if abs(mean) <= LARGEST_ORIGIN else 0
        squares[p] = zeros[p] * (origin[p].real * origin[p].real + origin[p].imag * origin[p].imag)
        excess[p] = -zeros[p] * origin[p]
    for k in range(len(values)):
        p = pixels[k]
        apart = values[k] - origin[p]
        excess[p] += apart
        squares[p] += apart.real * apart.real + apart.imag * apart.imag
    for p in range(len(origin)):
        rest = excess[p]
        squared = squares[p] - (rest.real * rest.real + rest.imag * rest.imag) / count
        if squared < 0:  # due to rounding, for a constant pixel
            squared = 0.0
        squares[p] = squared
