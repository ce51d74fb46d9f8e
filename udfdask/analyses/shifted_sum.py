"""Add the images of tilted beams, each at its own place, on a grid finer than the scan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import signal, sparse

from udfdask.base.types import AnyArray

LEAST_WEIGHT = 0.01
"""Smallest weight of a pixel, as a part of the largest: others are NaN."""


BATCH = 256
"""Frames that are added together."""


@dataclass(frozen=True, slots=True)
class ShiftedSum:
    """Where each beam of a frame is added on the fine grid, linearly between four of its pixels.

    The sum has margins for what is shifted out of the scan. What a frame adds are the same pixels
    for all frames, moved by the place of the frame: a footprint.
    """

    nav_shape: tuple[int, ...]
    """Shape of the scan."""
    upsampling: int
    """Fine pixels for each scan position, along both axes."""
    margin: AnyArray
    """Fine pixels (y, x) before the scan."""
    extent: AnyArray
    """Size of the footprint (y, x), in fine pixels, minus 1."""
    places: AnyArray
    """Pixels of the footprint, as flat indices of the sum, shape (pixels,)."""
    spread: sparse.csr_array
    """Part of each beam in each pixel of the footprint, shape (beams, pixels)."""

    @classmethod
    def of_beams(cls, shifts: AnyArray, nav_shape: tuple[int, ...], upsampling: int) -> ShiftedSum:
        """Return it for shifts (y, x) of images, in scan positions, shape (beams, 2)."""
        offsets = -upsampling * shifts
        whole = np.floor(offsets).astype(int)
        margin = -np.minimum(whole.min(axis=0), 0)
        extent = np.maximum(whole.max(axis=0) + 1, 0) + margin
        width = nav_shape[1] * upsampling + extent[1]
        flat, weights = [], []
        for corner in ((0, 0), (0, 1), (1, 0), (1, 1)):
            y, x = (whole + margin + corner).T
            flat.append(y * width + x)
            weights.append(np.prod(1 - np.abs(offsets - whole - corner), axis=1))
        places, rows = np.unique(np.concatenate(flat), return_inverse=True)
        entries = np.concatenate(weights), (np.tile(np.arange(len(shifts)), 4), rows.ravel())
        spread = sparse.csr_array(entries, shape=(len(shifts), len(places)))
        return cls(nav_shape, upsampling, margin, extent, places, spread)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the sum with its margins."""
        return tuple((self.upsampling * np.array(self.nav_shape) + self.extent).tolist())

    def add(
        self, total: AnyArray, coordinates: AnyArray, frames: AnyArray, used: Any, spread: Any
    ) -> None:
        """Add frames, shape (frames, values), at their positions; `used` values have a spread."""
        from udfdask.kernels.cpu.footprints import add_footprints

        starts = self.upsampling * (coordinates[:, 0] * total.shape[1] + coordinates[:, 1])
        for first in range(0, len(frames), BATCH):
            part = slice(first, first + BATCH)
            footprints = frames[part][:, used] @ spread
            add_footprints(total.reshape(-1), starts[part], self.places, footprints)

    def relative(self, total: AnyArray, known: AnyArray, means: AnyArray) -> AnyArray:
        """Return a sum relative to that of a scan without an object, without margins.

        `known` are the positions of the frames in the sum, `means` the mean of each beam. Pixels
        are NaN where few beams are added.
        """
        n = self.upsampling
        frames = np.zeros(n * np.array(self.nav_shape))
        frames[::n, ::n] = known
        footprint = np.zeros(self.extent + 1)
        y, x = np.divmod(self.places, self.shape[1])
        footprint[y, x] = means @ self.spread
        weights = signal.fftconvolve(frames, footprint)
        (top, left), (ny, nx) = self.margin, frames.shape
        inner = np.s_[top : top + ny, left : left + nx]
        image = np.full(frames.shape, np.nan)
        enough = weights[inner] > LEAST_WEIGHT * weights.max()
        np.divide(total[inner], weights[inner], out=image, where=enough)
        return image
