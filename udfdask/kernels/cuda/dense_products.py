"""Multiply frames with dense masks, with cuBLAS."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.kernels.cuda.sums import blocks_of


def add_dense_products(frames: Any, matrix: Any, out: Any, most: int | None = None) -> None:
    """Add ``frames @ matrix`` to `out`, shape (n, masks), computed in the dtype of the matrix.

    `frames` has the shape (n, pixels), `matrix` (pixels, masks). `most` is the largest number of
    pixels whose products the dtype of the matrix adds up exactly: the products of so many pixels
    each are added up in float64.
    """
    pixels = frames.shape[1]
    width = max(1, pixels if most is None else most)
    for block, rows in blocks_of(matrix.itemsize, frames, out):
        for start in range(0, pixels, width):
            part = block[:, start : start + width].astype(matrix.dtype, copy=False)
            product = part @ matrix[start : start + width]
            if product.dtype.kind != rows.dtype.kind:
                product = product.astype(np.float64).astype(rows.dtype)
            rows[:] += product.astype(rows.dtype, copy=False)
