"""Rings around the center of each frame: their sums, and Fourier sums along them.

Find pixels inside rings around a center, for kernels; rings can be elliptical. An ellipse is given
by a symmetric matrix (yy, yx, xx) with the determinant 1, which makes it round.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.kernels.cpu.ring_sums import FrameMemory
from udfdask.kernels.numba_internals.compile import (
    inner_kernel,
    lean_inner_kernel,
    lean_kernel,
    rounding_inner_kernel,
    summing_kernel,
)
from udfdask.kernels.numba_internals.reading import plus, times, value_at
from udfdask.kernels.numba_internals.vector_sums import add_to_pair


@lean_inner_kernel
def nearer(center: float, reach: float, size: int) -> tuple[int, int]:
    """Return start and stop of the pixels of an axis that are nearer to a center than `reach`."""
    start, stop, most = center - reach + 1, center + reach + 1, np.float64(size)
    # numbers that do not fit an integer would become negative
    return int(min(max(start, 0.0), most)), int(min(max(stop, 0.0), most))


@lean_inner_kernel
def nearer_rows(cy: float, matrix: Any, reach: float, height: int) -> Any:
    """Return start and stop of the rows that an ellipse of the radius `reach` can meet."""
    long = math.sqrt(matrix[1] * matrix[1] + matrix[2] * matrix[2])
    return nearer(cy, reach * long, height)


@lean_inner_kernel
def nearer_columns(dy: float, cx: float, matrix: Any, reach: float, width: int) -> Any:
    """Return start and stop of the pixels of a row inside an ellipse of the radius `reach`.

    The row is `dy` below the center. In a row, the squared distance is
    ``a x**2 + 2 b dy x + c dy**2`` with ``a c - b**2 = 1``.
    """
    yy, yx, xx = matrix
    a, b = yx * yx + xx * xx, yx * (yy + xx)
    reach *= math.sqrt(a)
    half = math.sqrt(max((reach - dy) * (reach + dy), 0.0)) / a
    return nearer(cx - b * dy / a, half, width)


# products are rounded one by one, so that the pixels are exactly those of the masks
@rounding_inner_kernel
def is_between(dy: float, dx: float, matrix: Any, inner: float, outer: float) -> Any:
    """Return whether a pixel is between two radii, whose squares are `inner` and `outer`.

    The outer radius belongs to the ring, the inner one does not: a disk has a negative `inner`.
    """
    yy, yx, xx = matrix
    y, x = yy * dy + yx * dx, yx * dy + xx * dx
    squared = y * y + x * x
    return (squared > inner) & (squared <= outer)


SETS = 8
"""Sets of sums: column j of a row adds to set ``j % SETS``, so that additions need not wait for the
one before. This is also the number of distances in a vector."""


def add_rings_about(
    flat: AnyArray,
    frame_step: int,
    row_step: int,
    swap: bool | None,
    window: tuple[int, int, int, int],
    centers: AnyArray,
    matrix: tuple[float, float, float],
    inner: float,
    thickness: float,
    sums: AnyArray,
    covered: AnyArray,
) -> None:
    """Add sum(w * I) and sum(w) of rings around each frame's own center, shape (frames, rings).

    `flat` and the steps come from `rows_in_memory`, `swap` from `as_native`. `window` holds the
    first row and column of the tile in the frame, its height and its width. The weights w are those
    of `radial_bins`. If one of the `centers`, shape (frames, 2), is not finite, its sums are NaN.
    """
    # A pixel is in rings whose middle radius is in an interval of the length thickness + 1. These
    # can be billions if rings are very thin, but only those that exist count.
    reached = min((thickness + 1) / thickness, sums.shape[1])
    pairs = (math.ceil(reached) + 1) // 2
    thin = True if thickness < 1 else None
    row = window[3] + SETS
    at_ring = np.empty(SETS * 4 * (sums.shape[1] + 4 * pairs))
    buffers = np.empty(row, np.int32), np.empty(row), np.empty(row), np.empty(row), at_ring
    rings = centers, (matrix, inner, thickness, sums.shape[1])
    frames = flat, frame_step, row_step, swap
    _add_rings(frames, window, rings, pairs, thin, buffers, (sums, covered))


@lean_kernel
def _add_rings(
    frames: Any, window: Any, rings: Any, pairs: int, thin: Any, buffers: Any, results: Any
) -> None:
    """Add each pixel to `pairs` pairs of adjacent rings; `thin` is None or True, for thin rings.

    `at_ring` holds four sums for each pair in each set: w * I in the lower and in the higher ring,
    and w in both. A sum for each ring took 1.15 times as long: the processor then waits when a
    pixel is in the next ring. Pairs are numbered by the lower ring; there are `beyond` more pairs
    below ring 0 and above the last one, whose sums are ignored.
    """
    flat, frame_step, row_step, swap = frames
    oy, ox, height, width = window
    centers, shape = rings
    matrix, inner, thickness, n_rings = shape
    places, low, high, values, at_ring = buffers
    sums, covered = results
    reach = inner + n_rings * thickness + 0.5
    beyond = 2 * pairs
    for f in range(sums.shape[0]):
        cy, cx = centers[f, 0] - oy, centers[f, 1] - ox
        if not (math.isfinite(cy) and math.isfinite(cx)):
            for b in range(n_rings):
                sums[f, b] = math.nan
            continue
        for k in range(at_ring.size):
            at_ring[k] = 0
        top, bottom = nearer_rows(cy, matrix, reach, height)
        for y in range(top, bottom):
            dy = y - cy
            first, stop = nearer_columns(dy, cx, matrix, reach, width)
            start, dx, n = f * frame_step + y * row_step + first, first - cx, stop - first
            padded = (n + SETS - 1) // SETS * SETS  # whole vectors: single values take longer
            for j in range(n):
                values[j] = value_at(flat, start + j, swap, np.float64)
            if thin is None:
                _find_wide(dy, dx, shape, padded, places, high)
                for j in range(n):
                    add_to_pair(at_ring, places[j], None, high[j], values[j], flat)
            else:
                for pair in range(pairs):
                    _find_narrow(dy, dx, shape, pairs, pair, padded, (places, low, high))
                    for j in range(n):
                        add_to_pair(at_ring, places[j], low[j], high[j], values[j], flat)
        _collect(at_ring, beyond, f, sums, covered)


@lean_inner_kernel
def _collect(at_ring: Any, beyond: int, f: int, sums: Any, covered: Any) -> None:
    """Add up the sums of each ring in all sets: in the pair whose lower or higher ring it is."""
    for b in range(sums.shape[1]):
        total, weight = 0.0, 0.0
        for k in range(SETS):
            as_lower = 4 * ((b + beyond) * SETS + k)
            as_higher = as_lower - 4 * SETS
            total += at_ring[as_lower] + at_ring[as_higher + 1]
            weight += at_ring[as_lower + 2] + at_ring[as_higher + 3]
        sums[f, b] += total
        covered[f, b] += weight


@lean_inner_kernel
def _find_wide(dy: float, dx: float, rings: Any, n: int, places: Any, high: Any) -> None:
    """Find the rings on both sides of the nearest edge of `n` pixels from (dy, dx) on.

    `places` gets the places of their pairs, in units of four sums, and `high` their weights in the
    higher ring; the rest of 1 is that in the lower ring.
    """
    (yy, yx, xx), inner, thickness, n_rings = rings
    per_pixel = 1 / thickness
    last, sets = np.float64(n_rings), np.int32(SETS)
    for j in range(n):
        column = np.int32(j)  # vectors of 64-bit integers need AVX-512
        x = dx + np.float64(column)
        v, u = yy * dy + yx * x, yx * dy + xx * x
        d = math.sqrt(v * v + u * u)
        edge = np.int32(min(max((d - inner) * per_pixel + 0.5, 0.0), last))
        weight = min(max(d - inner - np.float64(edge) * thickness + 0.5, 0.0), 1.0)
        weight = 1 - inner if d < 0.5 and inner < 0.5 else weight
        high[j] = weight
        places[j] = plus(times(plus(edge, np.int32(1)), sets), np.int32(column & (SETS - 1)))


@lean_inner_kernel
def _find_narrow(
    dy: float, dx: float, rings: Any, pairs: int, pair: int, n: int, results: Any
) -> None:
    """Find a pair of rings for each pixel; pair 0 has the lowest ring that can have a weight."""
    places, low, high = results
    (yy, yx, xx), inner, thickness, n_rings = rings
    per_pixel = min(1 / thickness, 1e300)  # finite: infinity times 0 has no ring
    sets = np.int32(SETS)
    most = thickness / 2 + 0.5
    for j in range(n):
        column = np.int32(j)
        x = dx + np.float64(column)
        v, u = yy * dy + yx * x, yx * dy + xx * x
        d = math.sqrt(v * v + u * u)
        ring = np.floor((d - inner - 0.5) * per_pixel)
        ring = min(max(ring, 0.0), np.float64(n_rings)) + 2 * pair
        distance = d - inner - (ring + 0.5) * thickness
        nearer = min(max(most - abs(distance), 0.0), 1.0)
        high[j] = min(max(most - abs(distance - thickness), 0.0), 1.0)
        central = d < 0.5 and inner < 0.5
        low[j] = 1 - inner if central and ring == 0 else nearer
        place = plus(np.int32(ring), np.int32(2 * pairs))
        places[j] = plus(times(place, sets), np.int32(column & (SETS - 1)))


TOGETHER = 256
"""Pixels of a ring whose waves are computed together."""


def add_waves_about(
    frames: FrameMemory,
    window: tuple[int, ...],
    around: tuple[AnyArray, tuple[float, float, float], float, float],
    sums: AnyArray,
) -> None:
    """Add ``sum(I * w * exp(i n phi))`` to `sums`, shape (frames, rings, orders), complex128.

    `around` are the centers, the matrix that makes the rings round, their inner radius and their
    thickness; all else is that of `add_rings_about`. The angles phi are those of the coordinates in
    which the rings are round.
    """
    rings = sums.shape[1]
    source = frames.flat, frames.frame_step, frames.row_step, frames.swap
    buffers = np.zeros(rings, np.int64), np.empty((rings, 3, TOGETHER)), np.empty((2, TOGETHER))
    pairs = sums.view(np.float64).reshape(*sums.shape, 2)
    _add_waves(source, window, around, buffers, pairs)


@summing_kernel
def _add_waves(source: Any, window: Any, around: Any, buffers: Any, sums: Any) -> None:
    """Add the waves of all frames.

    `pixels` holds weighted value, cosine and sine of the `waiting` pixels of each ring.
    """
    flat, frame_step, row_step, swap = source
    waiting, pixels, waves = buffers
    centers, matrix, inner, thickness = around
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
                            _add_ring_waves(pixels[ring], k + 1, waves, sums[f, ring])
                            waiting[ring] = 0
        for ring in range(rings):
            _add_ring_waves(pixels[ring], waiting[ring], waves, sums[f, ring])
            waiting[ring] = 0


@inner_kernel
def _add_ring_waves(pixels: Any, n: int, waves: Any, sums: Any) -> None:
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
