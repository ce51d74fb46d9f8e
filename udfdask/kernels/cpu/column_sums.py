"""Sums over the frames of a tile, pixel by pixel.

Kernels work on blocks of pixels, whose running sums stay in a cache. In each block they add eight
frames at a time, so that each running sum is loaded and stored once for eight values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.kernels.cpu.compile import kernel, lean_inner_kernel, lean_kernel
from udfdask.kernels.cpu.exact_sums import SAFE_SUM, add_checked
from udfdask.kernels.cpu.reading import TOGETHER, eight_at, noted, sum_of, value_at
from udfdask.types import AnyArray

MOST_EXACT = 1 << 12
"""Largest number of frames in an exact sum: values of up to 50 bits then need no checks."""


@lean_kernel
def add_columns(
    flat: AnyArray, count: int, step: int, width: int, swap: Any, block: int, total: AnyArray
) -> None:
    """Add all rows to `total`, in its dtype, `block` pixels at a time."""
    for start in range(0, width, block):
        part = total[start : min(start + block, width)]
        _add_block(flat, start, count, step, swap, None, part)


@lean_kernel
def sum_columns(
    flat: AnyArray, count: int, step: int, width: int, swap: Any, sums: AnyArray, total: AnyArray
) -> None:
    """Add all rows to `total`, first into `sums`, which holds the pixels of one step."""
    block = len(sums)
    for start in range(0, width, block):
        n = min(block, width - start)
        part, target = sums[:n], total[start : start + n]
        part[:] = 0
        _add_block(flat, start, count, step, swap, None, part)
        for j in range(n):
            target[j] += part[j]


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


@lean_inner_kernel
def _add_block(
    flat: AnyArray, first: int, count: int, step: int, swap: Any, exact: Any, sums: AnyArray
) -> Any:
    """Add `count` rows that start at value `first`; return the bits of all values if `exact`."""
    wide = sums.dtype.type
    bits = wide(0)
    eights = count - count % TOGETHER
    for i in range(0, eights, TOGETHER):
        place = i * step + first
        for j in range(len(sums)):
            eight = eight_at(flat, place, step, j, swap, wide)
            sums[j] += sum_of(eight, wide)
            bits = noted(exact, bits, eight)
    for i in range(eights, count):
        place = i * step + first
        for j in range(len(sums)):
            one = value_at(flat, place + j, swap, wide)
            sums[j] += one
            bits = noted(exact, bits, (one,))
    return bits
