"""The sums of a tile that several UDFs of a run share."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.kernels.moment_arrays import Moments

EXACT_PIXELS = 1 << 21
"""Largest number of pixels whose sum in double precision is exact for integers of 32 bits."""


class TileSums:
    """Sums over the frames of a tile and over the pixels of each frame.

    They are computed on first use, all at once, and each value of the tile is read once.
    """

    def __init__(self, tile: AnyArray) -> None:
        self.tile = tile
        """The tile itself, read-only."""

    @property
    def count(self) -> int:
        """Number of frames in the tile."""
        return len(self.tile)

    @property
    def moments(self) -> Moments:
        """Moments of each pixel over the frames, shape `part` of the signal."""
        return self._both[0]

    @property
    def pixel_sums(self) -> AnyArray:
        """Sum of the frames, shape `part` of the signal, float64; exact for integers."""
        origin, excess, _ = self.moments
        total: AnyArray = self.count * origin + excess
        return total

    @property
    def of_frames(self) -> AnyArray:
        """For each frame sum(I), sum(y * I), sum(x * I) from the first pixel, (n, 3), float64."""
        return self._both[1]

    @cached_property
    def _both(self) -> tuple[Moments, AnyArray]:
        n, height, width = self.tile.shape
        if not self.tile.size:
            return Moments(*np.zeros((3, height, width))), np.zeros((n, 3))
        from udfdask.kernels.cpu.tile_sums import sums_of  # loads numba

        return sums_of(self.tile)


def has_sums(dtype: np.dtype[Any], pixels: int) -> bool:
    """Return whether there are sums of tiles of a dtype, exact for integers."""
    if dtype.kind in "iu" and dtype.itemsize == 4:
        return pixels <= EXACT_PIXELS
    return dtype.kind == "b" or (dtype.kind in "iu" and dtype.itemsize < 4) or dtype.char in "efd"
