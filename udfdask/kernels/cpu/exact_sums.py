"""Sums of 64-bit integers that say when they do not fit 64 bits, instead of wrapping around.

Sums of narrower ones cannot exceed 64 bits. A block is added up without a look at each sum if its
largest value says that no sum can overflow: the bits of all values, put together on the way, are an
upper bound. Only where that is not enough each addition is looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.kernels.cpu.compile import inner_kernel, kernel
from udfdask.kernels.cpu.rows import turned
from udfdask.types import AnyArray

BLOCK = 1024
"""Pixels of a frame that are added up together."""

ROOM = 1 << 62
"""Sums up to this, positive or negative, fit 64 bits with and without a sign."""


@kernel
def add_rows_exactly(
    flat: AnyArray, count: int, step: int, width: int, turn: Any, total: AnyArray
) -> bool:
    """Add the sum of each row to `total`, of the same dtype; return whether all sums fit."""
    fits = True
    for i in range(count):
        fits &= _add_row(flat[i * step : i * step + width], turn, total[i : i + 1])
    return fits


@kernel
def add_pieces_exactly(starts: AnyArray, values: AnyArray, total: AnyArray) -> bool:
    """Add the sum of each piece of `values` to `total`; return whether all sums fit."""
    fits = True
    for i in range(len(total)):
        fits &= _add_row(values[starts[i] : starts[i + 1]], None, total[i : i + 1])
    return fits


@kernel
def add_inside_exactly(
    starts: AnyArray, pixels: AnyArray, values: AnyArray, inside: AnyArray, total: AnyArray
) -> bool:
    """Add the values of each frame at pixels inside; return whether all sums fit."""
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
def add_exactly(total: AnyArray, more: AnyArray) -> Any:
    """Add `more` to `total`, both flat and of one dtype; return whether all sums fit."""
    return add_checked(total, None, more)


@kernel
def bits_of(flat: AnyArray, count: int, step: int, width: int, turn: Any) -> Any:
    """Return a number that no value of the rows exceeds, positive or negative."""
    bits = flat.dtype.type(0)
    for i in range(count):
        row = flat[i * step : i * step + width]
        for j in range(width):
            bits |= size_of(turned(row[j], turn))
    return bits


@inner_kernel
def size_of(x: Any) -> Any:
    """Return the bits that say how large a number is: those of -x - 1 for a negative one."""
    return x ^ (x >> 63) if x < 0 else x


@inner_kernel
def _overflow(a: Any, b: Any, total: Any) -> Any:
    """Return a number whose highest bit is set if a + b is not `total`, but 2**64 more or less."""
    if type(total)(-1) < 0:
        return (a ^ total) & (b ^ total)
    return (a & b) | ((a | b) & ~total)


@inner_kernel
def add_checked(total: AnyArray, turn: Any, a: AnyArray) -> Any:
    """Add a row; return whether all sums fit."""
    bad = total.dtype.type(0)
    for j in range(len(total)):
        x, before = turned(a[j], turn), total[j]
        after = before + x
        total[j] = after
        bad |= _overflow(before, x, after)
    return (bad >> 63) == 0


@inner_kernel
def _add_row(row: AnyArray, turn: Any, total: AnyArray) -> bool:
    """Add the values of a row to the only value of `total`; return whether that fits."""
    fits = True
    some = np.empty(1, total.dtype)
    for start in range(0, len(row), BLOCK):
        block = row[start : start + BLOCK]
        bits, added = total.dtype.type(0), total.dtype.type(0)
        for j in range(len(block)):
            x = turned(block[j], turn)
            added += x
            bits |= size_of(x)
        some[0] = added
        if bits <= total.dtype.type(ROOM // BLOCK):
            fits &= add_checked(total, None, some)
        else:
            for j in range(len(block)):
                some[0] = turned(block[j], turn)
                fits &= add_checked(total, None, some)
    return fits
