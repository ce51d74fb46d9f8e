"""Sums and squares of integers that are exact, whatever their size, and merging of moments.

A block of 64-bit integers is first added up without checks, while the bits of all its values are
combined to an upper bound. Only if the bound does not rule out an overflow is each addition
checked.

Squares of narrow integers need twice the bits, but parabolas do not: for 8-bit values, x * (255 -
x) is even and at most 127 * 128, so that the halves of eight of them fit 16 bits. The sum of the
squares is 255 times that of the values, minus that of the parabolas. For signed values, the
parabola is x * (x + 1). Widening each square took 1.7 times as long for 8 bits, 1.2 times for 16.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.kernels.numba_internals.compile import (
    inner_kernel,
    kernel,
    lean_inner_kernel,
    lean_kernel,
    rounding_inner_kernel,
)
from udfdask.kernels.numba_internals.reading import (
    TOGETHER,
    eight_at,
    minus,
    plus,
    sum_of,
    times,
    value_at,
)
from udfdask.kernels.numba_internals.rows import swapped

BLOCK = 1024
"""Pixels of a frame that are added up with one check."""

SAFE_SUM = 1 << 62
"""Sums up to this absolute value fit int64 and uint64."""


@inner_kernel
def bounds_of(starts: Any, steps: Any, i: int) -> Any:
    """Return start and stop of a row: of equal rows with a step and a width if `starts` is None."""
    step, width = steps
    if starts is None:
        return i * step, i * step + width
    return starts[i], starts[i + 1]


@kernel
def add_rows_exactly(flat: Any, starts: Any, steps: Any, swap: Any, total: Any) -> bool:
    """Add the sum of each row to `total`, of the same dtype; return whether all sums fit."""
    fits = True
    for i in range(len(total)):
        first, stop = bounds_of(starts, steps, i)
        fits &= _add_row(flat[first:stop], swap, total[i : i + 1])
    return fits


@kernel
def scatter_exactly(pixels: AnyArray, values: AnyArray, total: AnyArray) -> Any:
    """Add each value to its pixel; return whether all sums fit."""
    bad = total.dtype.type(0)
    for k in range(len(values)):
        bad |= _add_at(total, pixels[k], values[k])
    return (bad >> 63) == 0


@kernel
def bits_of(flat: AnyArray, count: int, step: int, width: int, swap: Any) -> Any:
    """Return an upper bound of the absolute values of the rows."""
    bits = flat.dtype.type(0)
    for i in range(count):
        row = flat[i * step : i * step + width]
        for j in range(width):
            bits |= size_of(swapped(row[j], swap))
    return bits


@inner_kernel
def size_of(x: Any) -> Any:
    """Return the bits that determine the size of a number: those of -x - 1 if it is negative."""
    return x ^ (x >> 63) if x < 0 else x


@inner_kernel
def _add_at(sums: AnyArray, place: int, b: Any) -> Any:
    """Add a value; return a number whose highest bit is set if the sum wrapped around."""
    a = sums[place]
    total = a + b
    sums[place] = total
    if type(total)(-1) < 0:
        return (a ^ total) & (b ^ total)
    return (a & b) | ((a | b) & ~total)


@inner_kernel
def add_checked(total: AnyArray, swap: Any, a: AnyArray) -> Any:
    """Add a row and check each sum; return whether all sums fit."""
    bad = total.dtype.type(0)
    for j in range(len(total)):
        bad |= _add_at(total, j, swapped(a[j], swap))
    return (bad >> 63) == 0


@inner_kernel
def _add_row(row: AnyArray, swap: Any, total: AnyArray) -> Any:
    """Add the values of a row to `total`, shape (1,); return whether the sum fits."""
    bad = total.dtype.type(0)
    for start in range(0, len(row), BLOCK):
        block = row[start : start + BLOCK]
        bits, added = total.dtype.type(0), total.dtype.type(0)
        for j in range(len(block)):
            x = swapped(block[j], swap)
            added += x
            bits |= size_of(x)
        if bits <= total.dtype.type(SAFE_SUM // BLOCK):
            bad |= _add_at(total, 0, added)
        else:
            for j in range(len(block)):
                bad |= _add_at(total, 0, swapped(block[j], swap))
    return (bad >> 63) == 0


LARGEST: dict[str, tuple[Any, Any]] = {
    "u1": (np.uint16(255), np.uint16(0)),
    "i1": (np.int16(127), np.uint16(0)),
    "u2": (np.uint32(65535), np.uint32(0)),
    "i2": (np.int32(32767), np.uint32(0)),
}
"""Integers whose squares are added up exactly, with the largest value and 0.

The dtype of the first number holds the sum of eight values, that of the second one their parabolas.
"""

HALVES = {"u1": np.uint32, "i1": np.uint32, "u2": np.uint64, "i2": np.uint64}
"""The dtype for half the sum of the parabolas of `MOST_SQUARES` values."""

MOST_SQUARES = 1 << 15
"""Largest number of frames whose squares are added up: the steps up to the variance fit 64 bits."""


PIECE = 1024
"""Pixels at a time whose sums of eight rows wait in the first-level cache to be widened.

LLVM fills vectors with the widest numbers of a loop: in a loop that widens, arithmetic with narrow
numbers leaves half of a vector empty, or more. With vectors of 128 bits, a loop of its own makes
variances 1.5 times as fast, with 256 bits 1.15 times. With 512 bits, it makes them 1.2 to 1.4 times
as fast where LLVM only fills 256 bits in loops, as for processors of Intel, otherwise 0.93 to 1.
"""


@lean_kernel
def square_columns(
    rows: Any, largest: Any, eights_of: Any, buffers: Any, before: int, moments: Any
) -> None:
    """Merge the moments of all rows into those of `before` other rows, as `deviate_columns` does.

    The buffers hold the sums of the pixels of one step, and half the sums of their parabolas;
    `eights_of` the same of eight rows, in the dtypes of `largest`, for `PIECE` pixels.
    """
    flat, count, step, width, swap = rows
    sums, halves = buffers
    origin, excess, varsum = moments
    narrow, unsigned = type(largest[0]), type(largest[1])
    wide, wider = sums.dtype.type, halves.dtype.type
    block = len(sums)
    each = 1.0 / count
    eights = count - count % TOGETHER
    for start in range(0, width, block):
        n = min(block, width - start)
        for j in range(n):
            sums[j] = halves[j] = 0
        for i in range(0, eights, TOGETHER):
            some = sums[:n], halves[:n]
            _add_eight(flat, i * step + start, step, swap, largest, eights_of, some)
        for i in range(eights, count):
            place = i * step + start
            for j in range(n):
                x = value_at(flat, place + j, swap, narrow)
                sums[j] += wide(x)
                halves[j] += wider(unsigned(parabolas_of(largest[0], x, times(x, x))) >> 1)
        stop = start + n
        origins, excesses, varsums = origin[start:stop], excess[start:stop], varsum[start:stop]
        if before == 0:
            for j in range(n):
                origins[j] = 0.0
        for j in range(n):
            s, parabolas = np.int64(sums[j]), np.int64(halves[j]) * 2
            squared = squares_of(largest[0], s, parabolas)
            # n * sum(x**2) and sum(x)**2 are below 2**62: every step but the last is exact
            deviation = np.float64(squared * count - s * s) * each
            mine, theirs = (excesses[j], varsums[j]), (np.float64(s), deviation)
            excesses[j], varsums[j] = merged(before, count, -origins[j], mine, theirs)


@lean_inner_kernel
def _add_eight(
    flat: Any, place: Any, step: Any, swap: Any, largest: Any, eights_of: Any, buffers: Any
) -> None:
    """Add eight rows to the sums of pixels and to half the sums of their parabolas."""
    sums, halves = buffers
    wide, wider, n = sums.dtype.type, halves.dtype.type, len(sums)
    totals_of_eight, halves_of_eight = eights_of
    for first in range(0, n, PIECE):
        m = min(PIECE, n - first)
        for j in range(m):
            found = _of_eight(flat, place + first, step, j, swap, largest)
            totals_of_eight[j], halves_of_eight[j] = found
        some, their = sums[first : first + m], halves[first : first + m]
        for j in range(m):
            some[j] += wide(totals_of_eight[j])
            their[j] += wider(halves_of_eight[j])


@lean_inner_kernel
def _of_eight(flat: Any, place: Any, step: Any, j: Any, swap: Any, largest: Any) -> Any:
    """Return the sum of a column of eight rows, and half the sum of its parabolas."""
    narrow, unsigned = type(largest[0]), type(largest[1])
    eight = eight_at(flat, place, step, j, swap, narrow)
    upper, lower = sum_of(eight[:4], narrow), sum_of(eight[4:], narrow)
    # the squares wrap around, but not the parabolas
    squares = times(eight, eight)
    first = unsigned(parabolas_of(largest[0], upper, sum_of(squares[:4], narrow))) >> 1
    second = unsigned(parabolas_of(largest[0], lower, sum_of(squares[4:], narrow))) >> 1
    return plus(upper, lower), first + second


@lean_inner_kernel
def parabolas_of(largest: Any, total: Any, squares: Any) -> Any:
    """Return the sum of the parabolas of values, from their sum and the sum of their squares."""
    if type(largest)(-1) < 0:
        return plus(squares, total)
    return minus(times(largest, total), squares)


@lean_inner_kernel
def squares_of(largest: Any, total: Any, parabolas: Any) -> Any:
    """Return the sum of the squares of values, from their sum and the sum of their parabolas."""
    if type(largest)(-1) < 0:
        return parabolas - total
    return np.int64(largest) * total - parabolas


@lean_kernel
def merge_columns(before: int, moments: Any, count: int, more: Any) -> None:
    """Merge the moments of `count` rows into those of `before` other rows, at least one."""
    origin, excess, varsum = moments
    more_origin, more_excess, more_varsum = more
    for j in range(len(origin)):
        shift = more_origin[j] - origin[j]
        mine, theirs = (excess[j], varsum[j]), (more_excess[j], more_varsum[j])
        excess[j], varsum[j] = merged(before, count, shift, mine, theirs)


@rounding_inner_kernel
def merged(before: int, count: int, shift: float, mine: Any, theirs: Any) -> Any:
    """Return excess and varsum of `before` and `count` frames, whose origins differ by `shift`.

    This is the formula of Chan, Golub and LeVeque (1979). Differences of similar origins are exact.
    """
    (excess, varsum), (more_excess, more_varsum) = mine, theirs
    if before == 0:
        return more_excess, more_varsum
    n, m = np.float64(before), np.float64(count)
    # for a constant pixel, `more * n` and `excess * m` are equal: its variance is exactly 0
    scale, weight = 1.0 / (n * m), n * m / (n + m)
    difference = shift + (more_excess * n - excess * m) * scale
    return (
        excess + (more_excess + shift * m),
        varsum + (more_varsum + difference * difference * weight),
    )
