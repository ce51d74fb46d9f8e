"""Sums of the pixels of each frame, and of frames, pixel by pixel.

Frames are added in blocks of pixels, whose running sums stay in a cache, and eight at a time, so
that each running sum is loaded and stored once for eight values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.kernels.cpu.exact_sums import SAFE_SUM, add_checked, add_rows_exactly, bounds_of
from udfdask.kernels.numba_internals.compile import (
    inner_kernel,
    kernel,
    lean_inner_kernel,
    lean_kernel,
    reordering_kernel,
)
from udfdask.kernels.numba_internals.reading import TOGETHER, eight_at, noted, sum_of, value_at
from udfdask.kernels.numba_internals.rows import MOST, as_real, as_rows, swapped, wider
from udfdask.kernels.overflow import is_long, require

MOST_EXACT = 1 << 12
"""Largest number of frames in an exact sum: values of up to 50 bits then need no checks."""


@lean_kernel
def add_columns(rows: Any, block: int, sums: Any, total: AnyArray) -> None:
    """Add all rows to `total`, `block` pixels at a time: first into `sums`, unless it is None."""
    flat, count, step, width, swap = rows
    for start in range(0, width, block):
        n = min(block, width - start)
        target = total[start : start + n]
        if sums is None:
            _add_block(flat, start, count, step, swap, None, target)
        else:
            part = sums[:n]
            part[:] = 0
            _add_block(flat, start, count, step, swap, None, part)
            for j in range(n):
                target[j] += part[j]


@kernel
def add_columns_exactly(rows: Any, block: int, total: AnyArray) -> bool:
    """Add all rows to `total`, in the same dtype; return whether all sums fit."""
    flat, count, step, width, swap = rows
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


COLUMNS = 1 << 14
"""Pixels at a time: their sums stay in a cache. With fewer, frames are not read sequentially."""

FEW = 256
"""Frames per intermediate sum of bytes in 16 bits, or of values that have the total's precision."""


def add_frames(tile: AnyArray, total: AnyArray) -> None:
    """Add all frames of a tile, shape (n, *part), to `total`, shape `part`, contiguous.

    `total` is uint64, int64, float64 or complex128, according to the kind of the data; float64 is
    also possible for 64-bit integers. Raise if a sum of integers overflows. NumPy adds up dtypes
    that kernels do not support.
    """
    if not tile.size:
        return
    narrow = wider(tile.dtype)
    if narrow is None:
        total += np.add.reduce(tile.astype(total.dtype, copy=False), axis=0)
        return
    rows = as_rows(tile).as_real()
    target = as_real(total)
    block = min(COLUMNS, rows.width)
    if rows.flat.dtype == target.dtype and is_long(target.dtype):
        for group in rows.cut(MOST_EXACT):
            require(add_columns_exactly(tuple(group), block, target), target.dtype)
        return
    dtype = target.dtype if is_long(rows.flat.dtype) else narrow.type(0).real.dtype
    if dtype == target.dtype != rows.flat.dtype:
        add_columns(tuple(rows), block, None, target)
        return
    # there is no wider dtype than double precision: sum in two steps, with smaller rounding errors
    most = FEW if rows.flat.dtype == target.dtype else MOST
    if rows.flat.dtype.itemsize == 1:  # twice as many sums fit a vector
        dtype, most = np.dtype(f"{rows.flat.dtype.kind}2"), FEW
    sums = np.empty(block, dtype)
    for group in rows.cut(most):
        add_columns(tuple(group), block, sums, target)


BLOCK = 1024
"""Pixels that are added up one after another; the sums of blocks are added up in pairs."""


def add_pixels(tile: AnyArray, total: AnyArray) -> None:
    """Add the pixels of each frame of a tile, shape (n, *part), to `total`, shape (n,).

    `total` is uint64, int64, float64 or complex128, according to the kind of the data; float64 is
    also possible for 64-bit integers. Raise if a sum of integers overflows. NumPy adds up dtypes
    that kernels do not support.
    """
    if not tile.size:
        return
    narrow = wider(tile.dtype)
    if narrow is None:
        axes = tuple(range(1, tile.ndim))
        total += np.add.reduce(tile.astype(total.dtype, copy=False), axis=axes)
        return
    flat, _, step, width, swap = as_rows(tile)
    _add_rows(flat, (None, (step, width)), width, swap, narrow, total)


def add_ragged(starts: AnyArray, values: AnyArray, total: AnyArray) -> None:
    """Add up rows of different lengths; `total` has the shape (rows,) and a dtype as above.

    Row i is ``values[starts[i] : starts[i + 1]]``, in a dtype that compiled code supports.
    """
    if len(values):
        narrow = wider(values.dtype)
        assert narrow is not None
        longest = int(np.diff(starts).max())
        _add_rows(values, (starts, (0, 0)), longest, None, narrow, total)


def _add_rows(
    flat: AnyArray,
    rows: tuple[AnyArray | None, tuple[int, int]],
    longest: int,
    swap: bool | None,
    narrow: np.dtype[Any],
    total: AnyArray,
) -> None:
    """Add up rows of flat memory; the arguments of `bounds_of` say where they are."""
    if flat.dtype == total.dtype and is_long(total.dtype):
        require(add_rows_exactly(flat, *rows, swap, total), total.dtype)
        return
    zero = total.dtype.type(0) if is_long(flat.dtype) else narrow.type(0)
    sum_rows(flat, *rows, swap, zero, np.empty(-(-longest // BLOCK), total.dtype), total)


@kernel
def sum_rows(
    flat: Any, starts: Any, steps: Any, swap: Any, zero: Any, blocks: Any, total: Any
) -> None:
    """Add the sum of each row to `total`; blocks are summed in the dtype of `zero`."""
    for i in range(len(total)):
        first, stop = bounds_of(starts, steps, i)
        if first < stop:
            total[i] += _sum_row(flat[first:stop], swap, zero, blocks)


@inner_kernel
def _sum_row(row: AnyArray, swap: Any, zero: Any, blocks: AnyArray) -> Any:
    """Return the sum of a row that is not empty; `blocks` is a buffer for the sums of blocks."""
    n = 0
    for start in range(0, len(row), BLOCK):
        blocks[n] = _sum_block(row[start : start + BLOCK], swap, zero)
        n += 1
    while n > 1:  # in pairs: rounding errors only grow with the logarithm of the number of blocks
        half = n // 2
        for j in range(half):
            blocks[j] = blocks[2 * j] + blocks[2 * j + 1]
        if n % 2:
            blocks[half] = blocks[n - 1]
            half += 1
        n = half
    return blocks[0]


@reordering_kernel
def _sum_block(row: AnyArray, swap: Any, zero: Any) -> Any:
    """Return the sum of a row in the dtype of `zero`."""
    wide = type(zero)
    total = zero
    for j in range(len(row)):
        total = wide(total + wide(swapped(row[j], swap)))
    return total
