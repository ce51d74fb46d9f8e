"""Converts pieces of frames and hands them to BLAS, without a turn at Python's lock in between."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.kernels.cpu.byte_order import turned
from udfdask.kernels.cpu.compile import inner_kernel, kernel
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
