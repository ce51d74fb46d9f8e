"""Sums over the frames of a tile, pixel by pixel.

Kernels work on blocks of pixels, whose running sums stay in a cache. In each block they add eight
frames at a time, so that each running sum is loaded and stored once for eight values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.kernels.cpu.compile import inner_kernel, kernel
from udfdask.kernels.cpu.exact_sums import SAFE_SUM, add_checked, size_of
from udfdask.kernels.cpu.rows import swapped
from udfdask.types import AnyArray

TOGETHER = 1 << 12
"""Largest number of frames in an exact sum: values of up to 50 bits then need no checks."""


@kernel
def add_columns(
    flat: AnyArray, count: int, step: int, width: int, swap: Any, block: int, total: AnyArray
) -> None:
    """Add all rows to `total`, in its dtype, `block` pixels at a time."""
    for start in range(0, width, block):
        part = total[start : min(start + block, width)]
        _add_block(flat, start, count, step, swap, None, part)


@kernel
def sum_columns(
    flat: AnyArray, count: int, step: int, width: int, swap: Any, sums: AnyArray, total: AnyArray
) -> None:
    """Add all rows to `total`, first into `sums`, which holds the pixels of one step."""
    block = len(sums)
    for start in range(0, width, block):
        n = min(block, width - start)
        part = sums[:n]
        part[:] = 0
        _add_block(flat, start, count, step, swap, None, part)
        _add_one(total[start : start + n], None, None, None, part)


@kernel
def add_columns_exactly(
    flat: AnyArray, count: int, step: int, width: int, swap: Any, block: int, total: AnyArray
) -> bool:
    """Add all rows to `total`, in the same dtype; return whether all sums fit."""
    sums = np.empty(block, total.dtype)
    bound = total.dtype.type(SAFE_SUM // count)
    fits = True
    for start in range(0, width, block):
        n = min(block, width - start)
        part, target = sums[:n], total[start : start + n]
        part[:] = 0
        if _add_block(flat, start, count, step, swap, True, part) <= bound:
            fits &= add_checked(target, None, part)
        else:
            for i in range(count):
                k = i * step + start
                fits &= add_checked(target, swap, flat[k : k + n])
    return fits


@inner_kernel
def _add_block(
    flat: AnyArray, first: int, count: int, step: int, swap: Any, exact: Any, sums: AnyArray
) -> Any:
    """Add `count` rows that start at value `first`; return the bits of all values if `exact`."""
    n = len(sums)
    bits = sums.dtype.type(0)
    eights = count - count % 8
    for i in range(0, eights, 8):
        rows = eight_rows(flat, i * step + first, step, n)
        bits = _add_eight(sums, swap, exact, bits, *rows)
    for i in range(eights, count):
        k = i * step + first
        bits = _add_one(sums, swap, exact, bits, flat[k : k + n])
    return bits


@inner_kernel
def eight_rows(flat: AnyArray, first: int, step: int, n: int) -> tuple[AnyArray, ...]:
    """Return `n` values of eight rows; the first row starts at value `first`."""
    return (
        flat[first : first + n],
        flat[first + step : first + step + n],
        flat[first + 2 * step : first + 2 * step + n],
        flat[first + 3 * step : first + 3 * step + n],
        flat[first + 4 * step : first + 4 * step + n],
        flat[first + 5 * step : first + 5 * step + n],
        flat[first + 6 * step : first + 6 * step + n],
        flat[first + 7 * step : first + 7 * step + n],
    )


@inner_kernel
def _noted(exact: Any, bits: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Return `bits` combined with those of four values; no code is generated if `exact` is None."""
    if exact is None:
        return bits
    return bits | (size_of(a) | size_of(b) | size_of(c) | size_of(d))


@inner_kernel
def _add_one(sums: AnyArray, swap: Any, exact: Any, bits: Any, a: AnyArray) -> Any:
    """Add a row; return `bits`, combined with those of its values if `exact`."""
    wide = sums.dtype.type
    for j in range(len(sums)):
        x = wide(swapped(a[j], swap))
        sums[j] += x
        bits = _noted(exact, bits, x, x, x, x)
    return bits


@inner_kernel
def _add_eight(
    sums: AnyArray,
    swap: Any,
    exact: Any,
    bits: Any,
    a: AnyArray,
    b: AnyArray,
    c: AnyArray,
    d: AnyArray,
    e: AnyArray,
    f: AnyArray,
    g: AnyArray,
    h: AnyArray,
) -> Any:
    """Add eight rows; return `bits`, combined with those of their values if `exact`."""
    wide = sums.dtype.type
    for j in range(len(sums)):
        p, q = wide(swapped(a[j], swap)), wide(swapped(b[j], swap))
        r, s = wide(swapped(c[j], swap)), wide(swapped(d[j], swap))
        t, u = wide(swapped(e[j], swap)), wide(swapped(f[j], swap))
        v, w = wide(swapped(g[j], swap)), wide(swapped(h[j], swap))
        sums[j] += ((p + q) + (r + s)) + ((t + u) + (v + w))
        bits = _noted(exact, bits, p, q, r, s)
        bits = _noted(exact, bits, t, u, v, w)
    return bits
