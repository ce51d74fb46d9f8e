"""Weighted sums of some pixels of frames, ring by ring."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from udfdask.kernels.cuda.sums import blocks_of


def add_ring_products(frames: Any, rings: Sequence[tuple[Any, Any]], out: Any) -> None:
    """Add weighted sums over the pixels of each ring to `out`, shape (n, rings, m).

    `frames` has shape (n, pixels); of each ring places, int64, shape (k,), and weights, shape
    (k, m), are given, in the dtype of which products are made. Other pixels are not read.
    """
    for block, rows in blocks_of(8, frames, out):
        for ring, (places, weights) in enumerate(rings):
            if places.size:
                pixels = block[:, places].astype(weights.dtype, copy=False)
                rows[:, ring] += pixels @ weights
