"""Frames times dense masks: BLAS, on pieces that stay in the cache while they are converted."""

from __future__ import annotations

import numpy as np

from udfdask.types import AnyArray

PIECE = 1 << 15
"""Converted values at a time: 128 KiB of float32. With 16 masks half as fast again as a tile at
once, which has left the L2 cache before BLAS reads it."""

NARROWEST = 512
"""Pixels of a piece, at least, for the calls not to show."""


def add_dense_products(
    frames: AnyArray, matrix: AnyArray, out: AnyArray, most: int | None = None
) -> None:
    """Add ``frames @ matrix`` to `out`, shape (n, masks), computed in the dtype of the matrix.

    `frames` has shape (n, pixels), `matrix` (pixels, masks). With `most`, products of no more
    than so many pixels are exact in the dtype of the matrix, and are added up in float64.
    """
    n, pixels = frames.shape
    if frames.dtype == matrix.dtype and most is None:
        out += frames @ matrix
        return
    width = max(NARROWEST, PIECE // max(1, n))
    width = max(1, min(width if most is None else min(width, most), pixels))
    buffer = np.empty((n, width), dtype=matrix.dtype)
    product = np.empty(out.shape, dtype=matrix.dtype)
    total = np.zeros(out.shape, dtype=matrix.dtype if most is None else np.float64)
    for first in range(0, pixels, width):
        stop = min(first + width, pixels)
        piece = buffer[:, : stop - first]
        np.copyto(piece, frames[:, first:stop], casting="unsafe")
        np.matmul(piece, matrix[first:stop], out=product)
        total += product
    out += total.astype(out.dtype, copy=False)
