"""Fourier sums along rings around a center of its own for each frame."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from udfdask.kernels.cpu.centered_rings import nearer_columns, nearer_rows
from udfdask.kernels.cpu.ring_sums import FrameMemory
from udfdask.kernels.numba_internals.compile import inner_kernel, summing_kernel
from udfdask.kernels.numba_internals.reading import value_at
from udfdask.types import AnyArray

TOGETHER = 256
"""Pixels of a ring whose waves are computed together."""


def add_waves_about(
    frames: FrameMemory,
    window: tuple[int, ...],
    centers: AnyArray,
    matrix: tuple[float, float, float],
    inner: float,
    thickness: float,
    sums: AnyArray,
) -> None:
    """Add ``sum(I * w * exp(i n phi))`` to `sums`, shape (frames, rings, orders), complex128.

    `window` holds the first row and column of the tile in the frame, its height and its width. The
    rings have the same thickness and start at the inner radius; the weights w are those of
    `radial_bins`. Distance and angle are those of the coordinates in which the rings are round.
    If a center, shape (frames, 2), is not finite, the sums of its frame are NaN.
    """
    rings = sums.shape[1]
    source = frames.flat, frames.frame_step, frames.row_step, frames.swap
    buffers = np.zeros(rings, np.int64), np.empty((rings, 3, TOGETHER)), np.empty((2, TOGETHER))
    pairs = sums.view(np.float64).reshape(*sums.shape, 2)
    _add(source, window, centers, matrix, inner, thickness, buffers, pairs)


@summing_kernel
def _add(
    source: Any,
    window: Any,
    centers: Any,
    matrix: Any,
    inner: float,
    thickness: float,
    buffers: Any,
    sums: Any,
) -> None:
    """Add the waves of all frames.

    Among the buffers, `pixels` holds the pixels of each ring whose waves were not added yet:
    weighted value, cosine and sine; `waiting` is their number.
    """
    flat, frame_step, row_step, swap = source
    waiting, pixels, waves = buffers
    top, left, height, width = window
    yy, yx, xx = matrix
    rings = sums.shape[1]
    reach = inner + rings * thickness + 0.5
    half = thickness / 2 + 0.5
    for f in range(sums.shape[0]):
        cy, cx = centers[f, 0], centers[f, 1]
        if not (math.isfinite(cy) and math.isfinite(cx)):
            sums[f] = math.nan
            continue
        first_row, last_row = nearer_rows(cy - top, matrix, reach + 1, height)
        for row in range(first_row, last_row):
            dy = np.float64(top + row) - cy
            start, stop = nearer_columns(dy, cx - left, matrix, reach + 1, width)
            for column in range(start, stop):
                dx = np.float64(left + column) - cx
                y, x = yy * dy + yx * dx, yx * dy + xx * dx
                d = math.sqrt(y * y + x * x)
                if d >= reach or d <= inner - 0.5:
                    continue
                cos, sin = (x / d, y / d) if d > 0 else (1.0, 0.0)
                lowest = math.floor((d - inner - 0.5) / thickness) - 1
                highest = math.ceil((d - inner + 0.5) / thickness) + 1
                first = int(min(max(lowest, 0.0), np.float64(rings)))
                for ring in range(first, int(min(max(highest, 0.0), np.float64(rings)))):
                    weight = min(half - abs(d - inner - (ring + 0.5) * thickness), 1.0)
                    if ring == 0 and inner < 0.5 and d < 0.5:
                        weight = 1 - inner
                    if weight > 0:
                        value = value_at(
                            flat, f * frame_step + row * row_step + column, swap, np.float64
                        )
                        k = waiting[ring]
                        pixels[ring, 0, k] = weight * value
                        pixels[ring, 1, k] = cos
                        pixels[ring, 2, k] = sin
                        waiting[ring] = k + 1
                        if k + 1 == TOGETHER:
                            _add_ring(pixels[ring], k + 1, waves, sums[f, ring])
                            waiting[ring] = 0
        for ring in range(rings):
            _add_ring(pixels[ring], waiting[ring], waves, sums[f, ring])
            waiting[ring] = 0


@inner_kernel
def _add_ring(pixels: Any, n: int, waves: Any, sums: Any) -> None:
    """Add the waves of n pixels: those of each order are computed from the order before."""
    for k in range(n):
        waves[0, k], waves[1, k] = pixels[0, k], 0.0
    for order in range(sums.shape[0]):
        real, imaginary = 0.0, 0.0
        for k in range(n):
            a, b = waves[0, k], waves[1, k]
            real += a
            imaginary += b
            waves[0, k] = a * pixels[1, k] - b * pixels[2, k]
            waves[1, k] = a * pixels[2, k] + b * pixels[1, k]
        sums[order, 0] += real
        sums[order, 1] += imaginary
