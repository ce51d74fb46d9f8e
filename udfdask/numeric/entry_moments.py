"""Sums and sums of squared deviations from the mean of sparse frames, zeros counted."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.numeric.compiled import contracting_kernel, kernel
from udfdask.numeric.entries import Entries
from udfdask.numeric.moments import MOST_SQUARES, merge_moments
from udfdask.types import AnyArray

FEWEST_BYTES = 2
"""Bytes up to which integers take sums of squares, which are exact."""


def add_entry_moments(entries: Entries, before: int, total: AnyArray, varsum: AnyArray) -> None:
    """Merge sparse frames into moments of `before` others.

    `total`, float64 or complex128, and `varsum`, float64, have the shape `part` and are contiguous.
    """
    values = entries.values
    exact = values.dtype.kind in "iu" and values.itemsize <= FEWEST_BYTES
    for some in entries.cut(MOST_SQUARES):
        if not some.frames:
            continue
        sums, squares = np.zeros(total.size, total.dtype), np.zeros(total.size)
        if exact:
            both = np.zeros((total.size, 2), np.int64)
            _square(some.pixels, some.values, both)
            _finish_squares(both, some.frames, sums, squares)
        else:
            _deviate(some.pixels, some.values, some.frames, sums, squares)
        more = sums.reshape(total.shape), squares.reshape(varsum.shape)
        merge_moments(before, total, varsum, some.frames, *more)
        before += some.frames


@kernel
def _square(pixels: AnyArray, values: AnyArray, both: AnyArray) -> None:
    """Add values and their squares, which lie beside each other in `both`."""
    for k in range(len(values)):
        x = np.int64(values[k])
        p = pixels[k]
        both[p, 0] += x
        both[p, 1] += x * x


@kernel
def _finish_squares(both: AnyArray, count: int, sums: Any, squares: AnyArray) -> None:
    """Make sums of squared deviations out of sums of squares of at most 32768 frames."""
    each = 1.0 / count
    for p in range(len(squares)):
        s = both[p, 0]
        sums[p] = s
        # n * sum(x**2) and sum(x)**2 are below 2**62, so that all but the last step is exact
        squares[p] = np.float64(both[p, 1] * count - s * s) * each


@contracting_kernel
def _deviate(pixels: AnyArray, values: AnyArray, count: int, sums: Any, squares: AnyArray) -> None:
    """Add values, then squared deviations from the mean, those of what is not stored as well."""
    zeros = np.full(len(sums), count)
    for k in range(len(values)):
        p = pixels[k]
        sums[p] += values[k]
        zeros[p] -= 1
    means = sums / count
    for k in range(len(values)):
        p = pixels[k]
        apart = values[k] - means[p]
        squares[p] += apart.real * apart.real + apart.imag * apart.imag
    for p in range(len(sums)):
        if zeros[p]:
            mean = means[p]
            squares[p] += zeros[p] * (mean.real * mean.real + mean.imag * mean.imag)
