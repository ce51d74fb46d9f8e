"""Sums of squared deviations over the frames of a tile, pixel by pixel.

As in `column_sums`, kernels work on blocks of pixels, and on eight frames at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.kernels.cpu.compile import contracting_kernel, lean_inner_kernel
from udfdask.kernels.cpu.intrinsics import minus
from udfdask.kernels.cpu.merging import merged
from udfdask.kernels.cpu.reading import TOGETHER, eight_at, sum_of, value_at
from udfdask.kernels.moment_arrays import LARGEST_ORIGIN
from udfdask.types import AnyArray

MOST_FRAMES = 64
"""Largest number of frames with a common origin. With 32, merging them took a fifth of the time."""


@contracting_kernel
def deviate_columns(
    flat: AnyArray,
    count: int,
    step: int,
    width: int,
    swap: Any,
    block: int,
    before: int,
    origin: AnyArray,
    excess: AnyArray,
    varsum: AnyArray,
) -> None:
    """Merge the moments of all rows, `block` pixels at a time, into those of `before` other rows.

    Deviations are taken from the first row, so that no offset is squared. If the first row is far
    from all others, rounding errors grow, but at most by a factor of the number of rows.
    """
    first, sums, squares = np.empty(block), np.empty(block), np.empty(block)
    each = 1.0 / count
    eights = count - count % TOGETHER
    for start in range(0, width, block):
        n = min(block, width - start)
        set_origins(first[:n], flat, start, swap)
        for j in range(n):
            sums[j] = squares[j] = 0.0
        for i in range(0, eights, TOGETHER):
            place = i * step + start
            for j in range(n):
                eight = eight_at(flat, place, step, j, swap, np.float64)
                eight = minus(eight, first[j])
                p, q, r, s, t, u, v, w = eight
                sums[j] += sum_of(eight, np.float64)
                # chains of fused operations leave the units for additions to differences and sums
                squares[j] = (p * p + (q * q + (r * r + (s * s + squares[j])))) + (
                    t * t + (u * u + (v * v + w * w))
                )
        for i in range(eights, count):
            place = i * step + start
            for j in range(n):
                x = value_at(flat, place + j, swap, np.float64) - first[j]
                sums[j] += x
                squares[j] += x * x
        stop = start + n
        origins, excesses, varsums = origin[start:stop], excess[start:stop], varsum[start:stop]
        if before == 0:
            for j in range(n):
                origins[j] = first[j]
        for j in range(n):
            shift, more = first[j] - origins[j], squares[j] - sums[j] * sums[j] * each
            excesses[j], varsums[j] = merged(
                before, count, shift, excesses[j], varsums[j], sums[j], more
            )


@lean_inner_kernel
def set_origins(origins: AnyArray, flat: AnyArray, place: int, swap: Any) -> None:
    """Write the values of a row, and 0 for NaN and for values so large that sums overflow."""
    for j in range(len(origins)):
        x = value_at(flat, place + j, swap, np.float64)
        origins[j] = x if abs(x) <= LARGEST_ORIGIN else 0.0
