"""Frames times dense masks: BLAS, on pieces that stay near while they are converted."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.types import AnyArray

PIECE = 1 << 19
"""Converted values at a time, at most: a tile of 16-bit integers as float32 has 2 MiB."""

SMALL = 1_000_000
"""Multiplications up to which OpenBLAS does not rearrange its input: up to 1.4 times as fast."""

LEAST = 1 << 17
"""Converted values at a time, at least. With fewer, threads wait for each other's Python."""

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
    wide = _wider(matrix.dtype)
    if frames.dtype == matrix.dtype and most is None:
        total = np.zeros(out.shape, dtype=wide)
        for first in range(0, pixels, WIDEST):
            total += frames[:, first : first + WIDEST] @ matrix[first : first + WIDEST]
        out += total.astype(out.dtype, copy=False)
        return
    small = SMALL // max(1, matrix.shape[1])
    values = min(small, PIECE) if small >= LEAST else PIECE
    width = max(1, min(max(NARROWEST, values // max(1, n)), pixels, WIDEST))
    most = width if most is None else min(most, width)
    width -= width % most
    buffer = np.empty((n, width), dtype=matrix.dtype)
    total = np.zeros(out.shape, dtype=wide)
    for first in range(0, pixels, width):
        stop = min(first + width, pixels)
        piece = buffer[:, : stop - first]
        np.copyto(piece, frames[:, first:stop], casting="unsafe")
        whole = (stop - first) // most  # so many products at once, in one call
        inner = whole * most
        if whole > 1:
            several = piece[:, :inner].reshape(n, whole, most).transpose(1, 0, 2)
            weights = matrix[first : first + inner].reshape(whole, most, -1)
            total += np.matmul(several, weights).sum(axis=0, dtype=total.dtype)
        else:
            total += piece[:, :inner] @ matrix[first : first + inner]
        if first + inner < stop:
            total += piece[:, inner:] @ matrix[first + inner : stop]
    out += total.astype(out.dtype, copy=False)


def _wider(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return in what products of pieces are added up: double precision for floats, else itself."""
    return np.result_type(dtype, np.float64) if dtype.kind in "fc" else dtype
