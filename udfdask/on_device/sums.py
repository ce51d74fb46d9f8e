"""Sums over frames and over pixels: the values are widened as they are read."""

from __future__ import annotations

from typing import Any


def add_frames(tile: Any, total: Any) -> None:
    """Add the frames of a tile, shape (n, *part), to `total`, shape `part`, in its dtype."""
    total += tile.sum(axis=0, dtype=total.dtype)


def add_pixels(tile: Any, sums: Any) -> None:
    """Add the pixels of each frame of a tile, shape (n, *part), to `sums`, shape (n,)."""
    sums += tile.sum(axis=tuple(range(1, tile.ndim)), dtype=sums.dtype)
