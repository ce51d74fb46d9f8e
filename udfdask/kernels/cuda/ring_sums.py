"""Weighted sums of the pixels of frames, ring by ring."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from udfdask.kernels.cuda.sums import blocks_of


def add_ring_products(frames: Any, rings: Sequence[tuple[Any, Any]], out: Any) -> None:
    """Add weighted sums over the pixels of each ring to `out`, shape (n, rings, m).

    `frames` has the shape (n, pixels). A ring consists of pixel indices, int64, shape (k,), and
    weights, shape (k, m), whose dtype is that of the products. Other pixels are not read.
    """
    for block, rows in blocks_of(8, frames, out):
        for ring, (pixels, weights) in enumerate(rings):
            if pixels.size:
                values = block[:, pixels].astype(weights.dtype, copy=False)
                rows[:, ring] += values @ weights
