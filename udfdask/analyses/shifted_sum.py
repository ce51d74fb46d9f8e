"""Add the images of tilted beams, each at its own place, on a grid finer than the scan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import signal

from udfdask.base.types import AnyArray

LEAST_WEIGHT = 0.01
"""Smallest weight of a pixel, as a part of the largest: others are NaN."""


@dataclass(frozen=True, slots=True)
class ShiftedSum:
    """Where each beam of a frame is added on the fine grid, linearly between four of its pixels.

    The sum has margins for what is shifted out of the scan.
    """

    nav_shape: tuple[int, ...]
    """Shape of the scan."""
    upsampling: int
    """Fine pixels for each scan position, along both axes."""
    margin: AnyArray
    """Fine pixels (y, x) before the scan."""
    extent: AnyArray
    """Fine pixels (y, x) that the sum is larger than the scan."""
    corners: AnyArray
    """First of the four pixels of each beam in the first frame, as a flat index of the sum."""
    weights: AnyArray
    """Part of each beam in its four pixels: two, and two in the row below, shape (beams, 4)."""

    @classmethod
    def of_beams(cls, shifts: AnyArray, nav_shape: tuple[int, ...], upsampling: int) -> ShiftedSum:
        """Return it for shifts (y, x) of images, in scan positions, shape (beams, 2)."""
        offsets = -upsampling * shifts
        whole = np.floor(offsets).astype(int)
        margin = -np.minimum(whole.min(axis=0), 0)
        extent = np.maximum(whole.max(axis=0) + 1, 0) + margin
        corners = (whole + margin) @ (nav_shape[1] * upsampling + extent[1], 1)
        y, x = (offsets - whole).T
        weights = np.stack([(1 - y) * (1 - x), (1 - y) * x, y * (1 - x), y * x], axis=1)
        return cls(nav_shape, upsampling, margin, extent, corners, weights)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the sum with its margins."""
        return tuple((self.upsampling * np.array(self.nav_shape) + self.extent).tolist())

    def add(self, total: AnyArray, where: AnyArray, frames: AnyArray, some: Any = ()) -> AnyArray:
        """Add frames, which have a value for each beam, at their positions; return sums of beams.

        `some` are the flat indices of pixels that are beams, and the numbers of these beams.
        """
        from udfdask.kernels.cpu.shifted_images import add_images
        from udfdask.kernels.numba_internals.rows import as_rows

        pixels, beams = some or (np.arange(len(self.corners)), ...)
        sums = np.zeros(len(pixels))
        if frames.size:
            starts = self.upsampling * (where @ (total.shape[1], 1))
            rows = as_rows(frames if frames.itemsize <= 8 else frames.astype(np.float64))
            add_images(total, starts, rows, pixels, self.corners[beams], self.weights[beams], sums)
        return sums

    def relative(self, total: AnyArray, known: AnyArray, means: AnyArray) -> AnyArray:
        """Return a sum relative to that of a scan without an object, without margins.

        `known` are the positions of the frames in the sum, `means` the mean of each beam. Pixels
        are NaN where few beams are added.
        """
        n = self.upsampling
        frames = np.zeros(n * np.array(self.nav_shape))
        frames[::n, ::n] = known
        one = np.zeros(self.shape)
        self.add(one, np.zeros((1, 2), int), means[np.newaxis])
        footprint = one[: self.extent[0] + 1, : self.extent[1] + 1]
        if known.all():  # then one axis after the other takes less time
            rows = signal.fftconvolve(footprint, frames[:, :1], axes=0)
            weights = signal.fftconvolve(rows, frames[:1], axes=1)
        else:
            weights = signal.fftconvolve(frames, footprint)
        (top, left), (ny, nx) = self.margin, frames.shape
        inner = np.s_[top : top + ny, left : left + nx]
        image = np.full(frames.shape, np.nan)
        enough = weights[inner] > LEAST_WEIGHT * weights.max()
        np.divide(total[inner], weights[inner], out=image, where=enough)
        return image
