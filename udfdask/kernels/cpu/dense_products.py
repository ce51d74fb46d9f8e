"""Frames times dense masks: BLAS, on pieces that stay near while they are converted."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.kernels.cpu.compile import inner_kernel, kernel
from udfdask.kernels.cpu.rows import as_rows, turned, wider
from udfdask.types import AnyArray


@kernel
def multiply_pieces(
    flat: AnyArray,
    count: int,
    step: int,
    width: int,
    turn: Any,
    matrix: AnyArray,
    depth: int,
    most: int,
    total: AnyArray,
) -> None:
    """Add all rows times a matrix to `total`, so many rows and pixels at a time.

    Pieces are converted to the dtype of the matrix, shape (pixels, masks), and multiplied in it.
    """
    masks = matrix.shape[1]
    values = np.empty(depth * min(most, width), matrix.dtype)
    products = np.empty(depth * masks, matrix.dtype)
    for start in range(0, count, depth):
        n = min(depth, count - start)
        some = products[: n * masks].reshape(n, masks)
        for first in range(0, width, most):
            w = min(most, width - first)
            piece = values[: n * w].reshape(n, w)
            for i in range(n):
                k = (start + i) * step + first
                _convert(flat[k : k + w], turn, piece[i])
            np.dot(piece, matrix[first : first + w], some)
            for i in range(n):
                for j in range(masks):
                    total[start + i, j] += some[i, j]


@inner_kernel
def _convert(row: AnyArray, turn: Any, out: AnyArray) -> None:
    """Write a row to another of the dtype wanted."""
    cast = out.dtype.type
    for j in range(len(out)):
        out[j] = cast(turned(row[j], turn))


SMALL = 1_000_000
"""Multiplications up to which OpenBLAS does not rearrange its input: up to 1.6 times as fast."""

SMALL_PIECE = 1 << 17
"""Converted values at a time, at most, for a product that small."""

LEAST = 1 << 16
"""Converted values at a time, at least, for which small products pay."""

PIECE = 1 << 18
"""Converted values at a time, at most: as float32 they have 1 MiB."""

DEPTH = 128
"""Frames of a piece, at most; half as many for a small product."""

NARROWEST = 128
"""Pixels of a piece, at least."""

WIDEST = 1 << 13
"""The same at most: BLAS adds up in the dtype of its matrices, pieces are added up in doubles."""


def add_dense_products(
    frames: AnyArray, matrix: AnyArray, out: AnyArray, most: int | None = None
) -> None:
    """Add ``frames @ matrix`` to `out`, shape (n, masks), computed in the dtype of the matrix.

    `frames` has shape (n, pixels), `matrix` (pixels, masks). With `most`, products of no more
    than so many pixels are exact in the dtype of the matrix, and are added up in float64.
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
    """Add products of frames that are converted first."""
    if wider(frames.dtype) is None:
        frames = frames.astype(matrix.dtype)
    small = SMALL // matrix.shape[1]
    is_small = small >= LEAST
    depth = min(len(frames), DEPTH // 2 if is_small else DEPTH)
    values = min(small, SMALL_PIECE) if is_small else PIECE
    width = min(widest, max(NARROWEST, values // depth))
    multiply_pieces(*as_rows(frames), np.ascontiguousarray(matrix), depth, width, total)


def _wider(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return in what products of pieces are added up: double precision for floats, else itself."""
    return np.result_type(dtype, np.float64) if dtype.kind in "fc" else dtype
