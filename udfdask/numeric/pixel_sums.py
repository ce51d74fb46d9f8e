"""Adds up the pixels of each frame of a tile."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.numeric.byte_order import turned
from udfdask.numeric.compiled import kernel, reordering_kernel
from udfdask.numeric.rows import as_rows, wider
from udfdask.types import AnyArray

BLOCK = 1024
"""Pixels that are added up in a loop, before such sums are added up in pairs."""


def add_pixels(tile: AnyArray, total: AnyArray) -> None:
    """Add the pixels of each frame of a tile, shape (n, *part), to `total`, shape (n,).

    `total` is uint64, int64, float64 or complex128 as the kind of the data asks for; dtypes that
    kernels do not know are added up by NumPy.
    """
    if not tile.size:
        return
    narrow = wider(tile.dtype)
    if narrow is None:
        total += np.add.reduce(
            tile.astype(total.dtype, copy=False), axis=tuple(range(1, tile.ndim))
        )
        return
    rows = as_rows(tile)
    blocks = np.empty(-(-rows.width // BLOCK), total.dtype)
    sum_rows(*rows, narrow.type(0), blocks, total)


@kernel
def sum_rows(
    flat: AnyArray,
    count: int,
    step: int,
    width: int,
    turn: Any,
    zero: Any,
    blocks: AnyArray,
    total: AnyArray,
) -> None:
    """Add the sum of each row to `total`; blocks are summed in the dtype of `zero`."""
    for i in range(count):
        n = 0
        for start in range(0, width, BLOCK):
            k = i * step + start
            blocks[n] = _sum_block(flat[k : k + min(BLOCK, width - start)], turn, zero)
            n += 1
        while n > 1:  # in pairs, which lets rounding errors grow with the logarithm alone
            half = n // 2
            for j in range(half):
                blocks[j] = blocks[2 * j] + blocks[2 * j + 1]
            if n % 2:
                blocks[half] = blocks[n - 1]
                half += 1
            n = half
        total[i] += blocks[0]


@reordering_kernel
def _sum_block(row: AnyArray, turn: Any, zero: Any) -> Any:
    """Return the sum of a row in the dtype of `zero`."""
    wide = type(zero)
    total = zero
    for j in range(len(row)):
        total = wide(total + wide(turned(row[j], turn)))
    return total
