"""Sums over the frames of a tile, pixel by pixel.

Kernels work on blocks of pixels, whose running sums stay in a cache. In each block they add eight
frames at a time, so that a running sum is loaded and stored once for eight values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.kernels.cpu.compile import inner_kernel, kernel
from udfdask.kernels.cpu.exact_sums import ROOM, add_checked, size_of
from udfdask.kernels.cpu.rows import turned
from udfdask.types import AnyArray

TOGETHER = 1 << 12
"""Frames that are added up together exactly, at most: their values may have 50 bits."""


@kernel
def add_columns(
    flat: AnyArray, count: int, step: int, width: int, turn: Any, block: int, total: AnyArray
) -> None:
    """Add all rows to `total`, in its dtype, for so many pixels at a time."""
    for start in range(0, width, block):
        some = total[start : min(start + block, width)]
        _add_block(flat, start, count, step, turn, None, some)


@kernel
def sum_columns(
    flat: AnyArray, count: int, step: int, width: int, turn: Any, sums: AnyArray, total: AnyArray
) -> None:
    """Add all rows to `total`, added up before in blocks of the length and dtype of `sums`."""
    block = len(sums)
    for start in range(0, width, block):
        n = min(block, width - start)
        some = sums[:n]
        some[:] = 0
        _add_block(flat, start, count, step, turn, None, some)
        _add_one(total[start : start + n], None, None, None, some)


@kernel
def add_columns_exactly(
    flat: AnyArray, count: int, step: int, width: int, turn: Any, block: int, total: AnyArray
) -> bool:
    """Add all rows to `total`, of the same dtype; return whether all sums fit."""
    sums = np.empty(block, total.dtype)
    bound = total.dtype.type(ROOM // count)
    fits = True
    for start in range(0, width, block):
        n = min(block, width - start)
        some, here = sums[:n], total[start : start + n]
        some[:] = 0
        if _add_block(flat, start, count, step, turn, True, some) <= bound:
            fits &= add_checked(here, None, some)
        else:
            for i in range(count):
                k = i * step + start
                fits &= add_checked(here, turn, flat[k : k + n])
    return fits


@inner_kernel
def _add_block(
    flat: AnyArray, first: int, count: int, step: int, turn: Any, exact: Any, sums: AnyArray
) -> Any:
    """Add `count` rows from value `first` on; return the bits of all values if `exact`."""
    n = len(sums)
    bits = sums.dtype.type(0)
    eights = count - count % 8
    for i in range(0, eights, 8):
        rows = eight_rows(flat, i * step + first, step, n)
        bits = _add_eight(sums, turn, exact, bits, *rows)
    for i in range(eights, count):
        k = i * step + first
        bits = _add_one(sums, turn, exact, bits, flat[k : k + n])
    return bits


@inner_kernel
def eight_rows(flat: AnyArray, first: int, step: int, n: int) -> tuple[AnyArray, ...]:
    """Return `n` values of eight rows, from value `first` on."""
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
    """Return `bits` with those of four values if `exact`; if it is None, no code is made."""
    if exact is None:
        return bits
    return bits | (size_of(a) | size_of(b) | size_of(c) | size_of(d))


@inner_kernel
def _add_one(sums: AnyArray, turn: Any, exact: Any, bits: Any, a: AnyArray) -> Any:
    """Add a row; return `bits`, with those of its values if `exact`."""
    wide = sums.dtype.type
    for j in range(len(sums)):
        x = wide(turned(a[j], turn))
        sums[j] += x
        bits = _noted(exact, bits, x, x, x, x)
    return bits


@inner_kernel
def _add_eight(
    sums: AnyArray,
    turn: Any,
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
    """Add eight rows; return `bits`, with those of their values if `exact`."""
    wide = sums.dtype.type
    for j in range(len(sums)):
        p, q = wide(turned(a[j], turn)), wide(turned(b[j], turn))
        r, s = wide(turned(c[j], turn)), wide(turned(d[j], turn))
        t, u = wide(turned(e[j], turn)), wide(turned(f[j], turn))
        v, w = wide(turned(g[j], turn)), wide(turned(h[j], turn))
        sums[j] += ((p + q) + (r + s)) + ((t + u) + (v + w))
        bits = _noted(exact, bits, p, q, r, s)
        bits = _noted(exact, bits, t, u, v, w)
    return bits
