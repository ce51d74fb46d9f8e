"""Multiply frames with dense masks, with BLAS, in blocks that stay in a cache when converted."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.kernels.cpu.compile import inner_kernel, kernel
from udfdask.kernels.cpu.rows import as_rows, swapped, wider
from udfdask.types import AnyArray


@kernel
def multiply_blocks(
    flat: AnyArray,
    count: int,
    step: int,
    width: int,
    swap: Any,
    matrix: AnyArray,
    depth: int,
    most: int,
    total: AnyArray,
) -> None:
    """Add the product of all rows with a matrix to `total`, `depth` rows and `most` pixels a time.

    Each block is converted to the dtype of the matrix, shape (pixels, masks), and multiplied.
    """
    masks = matrix.shape[1]
    values = np.empty(depth * min(most, width), matrix.dtype)
    products = np.empty(depth * masks, matrix.dtype)
    for start in range(0, count, depth):
        n = min(depth, count - start)
        product = products[: n * masks].reshape(n, masks)
        for first in range(0, width, most):
            w = min(most, width - first)
            block = values[: n * w].reshape(n, w)
            for i in range(n):
                k = (start + i) * step + first
                _convert(flat[k : k + w], swap, block[i])
            np.dot(block, matrix[first : first + w], product)
            for i in range(n):
                for j in range(masks):
                    total[start + i, j] += product[i, j]


@inner_kernel
def _convert(row: AnyArray, swap: Any, out: AnyArray) -> None:
    """Write a row to `out`, in the dtype of `out`."""
    cast = out.dtype.type
    for j in range(len(out)):
        out[j] = cast(swapped(row[j], swap))


SMALL = 1_000_000
"""Number of multiplications of a small product: OpenBLAS does not copy the matrices of a product
up to this size, and is up to 1.6 times as fast."""

SMALL_BLOCK = 1 << 17
"""Largest number of values in a block of a small product."""

LEAST = 1 << 16
"""Small products are only used if a block may have at least this number of values."""

BLOCK = 1 << 18
"""Largest number of values in a block otherwise: 1 MiB as float32."""

DEPTH = 128
"""Largest number of frames in a block; half as many for a small product."""

NARROWEST = 128
"""Smallest number of pixels in a block."""

WIDEST = 1 << 13
"""Largest number of pixels in a block. It limits rounding errors: BLAS adds up in the dtype of the
matrix, while blocks are added up in double precision."""


def add_dense_products(
    frames: AnyArray, matrix: AnyArray, out: AnyArray, most: int | None = None
) -> None:
    """Add ``frames @ matrix`` to `out`, shape (n, masks), computed in the dtype of the matrix.

    `frames` has the shape (n, pixels), `matrix` (pixels, masks). `most` is the largest number of
    pixels whose products the dtype of the matrix adds up exactly: the products of so many pixels
    each are added up in float64.
    """
    n, pixels = frames.shape
    if not (n and pixels and matrix.shape[1]):
        return
    total = np.zeros(out.shape, dtype=_wider(matrix.dtype))
    width = min(WIDEST, pixels if most is None else most)
    if matrix.dtype.char in "fdFD" and (frames.dtype != matrix.dtype or most is not None):
        _add_converted(frames, matrix, width, total)
    else:
        for first in range(0, pixels, width):
            total += frames[:, first : first + width] @ matrix[first : first + width]
    out += total.astype(out.dtype, copy=False)


def _add_converted(frames: AnyArray, matrix: AnyArray, widest: int, total: AnyArray) -> None:
    """Add products in blocks, which are converted to the dtype of the matrix first."""
    if wider(frames.dtype) is None:
        frames = frames.astype(matrix.dtype)
    small = SMALL // matrix.shape[1]
    is_small = small >= LEAST
    depth = min(len(frames), DEPTH // 2 if is_small else DEPTH)
    values = min(small, SMALL_BLOCK) if is_small else BLOCK
    width = min(widest, max(NARROWEST, values // depth))
    multiply_blocks(*as_rows(frames), np.ascontiguousarray(matrix), depth, width, total)


def _wider(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which the products of blocks are added up: floats get 64 bits."""
    return np.result_type(dtype, np.float64) if dtype.kind in "fc" else dtype
