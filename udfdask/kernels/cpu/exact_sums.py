"""Sums of 64-bit integers that report an overflow instead of wrapping around.

Sums of narrower integers always fit 64 bits. A block is first added up without checks, while the
bits of all its values are combined to an upper bound. Only if the bound does not rule out an
overflow is each addition checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.kernels.cpu.compile import inner_kernel, kernel
from udfdask.kernels.cpu.rows import swapped
from udfdask.types import AnyArray

BLOCK = 1024
"""Pixels of a frame that are added up with one check."""

SAFE_SUM = 1 << 62
"""Sums up to this absolute value fit int64 and uint64."""


@kernel
def add_rows_exactly(
    flat: AnyArray, count: int, step: int, width: int, swap: Any, total: AnyArray
) -> bool:
    """Add the sum of each row to `total`, of the same dtype; return whether all sums fit."""
    fits = True
    for i in range(count):
        fits &= _add_row(flat[i * step : i * step + width], swap, total[i : i + 1])
    return fits


@kernel
def add_ragged_exactly(starts: AnyArray, values: AnyArray, total: AnyArray) -> bool:
    """Add the sum of each row of `values` to `total`; return whether all sums fit."""
    fits = True
    for i in range(len(total)):
        fits &= _add_row(values[starts[i] : starts[i + 1]], None, total[i : i + 1])
    return fits


@kernel
def add_inside_exactly(
    starts: AnyArray, pixels: AnyArray, values: AnyArray, inside: AnyArray, total: AnyArray
) -> bool:
    """Add the values of each frame at the pixels inside; return whether all sums fit."""
    fits = True
    for f in range(len(total)):
        for k in range(starts[f], starts[f + 1]):
            if inside[pixels[k]]:
                fits &= add_checked(total[f : f + 1], None, values[k : k + 1])
    return fits


@kernel
def scatter_exactly(pixels: AnyArray, values: AnyArray, total: AnyArray) -> Any:
    """Add each value to its pixel; return whether all sums fit."""
    bad = total.dtype.type(0)
    for k in range(len(values)):
        p = pixels[k]
        before = total[p]
        total[p] = before + values[k]
        bad |= _overflow(before, values[k], total[p])
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
def _overflow(a: Any, b: Any, total: Any) -> Any:
    """Return a number whose highest bit is set if `total` = a + b wrapped around."""
    if type(total)(-1) < 0:
        return (a ^ total) & (b ^ total)
    return (a & b) | ((a | b) & ~total)


@inner_kernel
def add_checked(total: AnyArray, swap: Any, a: AnyArray) -> Any:
    """Add a row and check each sum; return whether all sums fit."""
    bad = total.dtype.type(0)
    for j in range(len(total)):
        x, before = swapped(a[j], swap), total[j]
        after = before + x
        total[j] = after
        bad |= _overflow(before, x, after)
    return (bad >> 63) == 0


@inner_kernel
def _add_row(row: AnyArray, swap: Any, total: AnyArray) -> bool:
    """Add the values of a row to `total`, shape (1,); return whether the sum fits."""
    fits = True
    value = np.empty(1, total.dtype)
    for start in range(0, len(row), BLOCK):
        block = row[start : start + BLOCK]
        bits, added = total.dtype.type(0), total.dtype.type(0)
        for j in range(len(block)):
            x = swapped(block[j], swap)
            added += x
            bits |= size_of(x)
        value[0] = added
        if bits <= total.dtype.type(SAFE_SUM // BLOCK):
            fits &= add_checked(total, None, value)
        else:
            for j in range(len(block)):
                value[0] = swapped(block[j], swap)
                fits &= add_checked(total, None, value)
    return fits
