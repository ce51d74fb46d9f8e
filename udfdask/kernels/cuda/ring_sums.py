"""Weighted sums of the pixels of frames, ring by ring."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from udfdask.kernels.cuda.sums import blocks_of

PIECE = 4096
"""Pixels whose products are added up in their own dtype: the sum of more of them is in float64."""


def add_ring_products(frames: Any, rings: Sequence[tuple[Any, Any]], out: Any) -> None:
    """Add weighted sums over the pixels of each ring to `out`, shape (n, rings, m).

    `frames` has the shape (n, pixels). A ring consists of pixel indices, int64, shape (k,), and
    weights, shape (k, m), whose dtype is that of the products. Other pixels are not read.
    """
    for block, rows in blocks_of(8, frames, out):
        for ring, (pixels, weights) in enumerate(rings):
            if pixels.size:
                values = block[:, pixels].astype(weights.dtype, copy=False)
                rows[:, ring] += _product(values, weights)


def _product(values: Any, weights: Any) -> Any:
    """Return the product of matrices, in float64 if there are many pixels."""
    pieces, rest = divmod(len(weights), PIECE)
    if not pieces:
        return values @ weights
    whole = pieces * PIECE
    cut = values[:, :whole].reshape(-1, pieces, PIECE).swapaxes(0, 1)
    sums = (cut @ weights[:whole].reshape(pieces, PIECE, -1)).sum(axis=0, dtype=np.float64)
    return sums + values[:, whole:] @ weights[whole:] if rest else sums
