"""Moments and spread of frames around the center of each frame.

Pixels are those of a ring, ``inner < d <= outer``, given by the centers of all frames, shape
(frames, 2), float64, a matrix that makes the ring round, and its radii; a disk has None as the
inner radius. If a center is not finite, the results of its frame are NaN. Pixels outside the ring
are not used. `origin` is the first pixel of a tile in the frame.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.kernels.cpu.centered_rings import is_between, nearer_columns, nearer_rows
from udfdask.kernels.cpu.sparse_sums import Entries
from udfdask.kernels.numba_internals.compile import reordering_kernel, summing_kernel
from udfdask.kernels.numba_internals.reading import plus, times, value_at
from udfdask.kernels.numba_internals.rows import as_native, rows_in_memory

Ring = tuple[AnyArray, tuple[float, float, float], tuple[float | None, float]]
"""Centers, matrix and radii."""


def _squared(ring: Ring) -> Any:
    """Return a ring with the squares of its radii, as `is_between` takes them."""
    centers, matrix, (inner, outer) = ring
    return centers, matrix, -1.0 if inner is None else float(inner) ** 2, float(outer) ** 2


def add_moments_about(tile: AnyArray, origin: tuple[int, ...], ring: Ring, out: AnyArray) -> None:
    """Add sum(I), sum(y * I) and sum(x * I) in a ring to `out`, shape (frames, 3), float64.

    `tile` has the shape (frames, height, width), is not empty and has a real dtype.
    """
    tile, swap = as_native(tile)
    frames = *rows_in_memory(tile), swap
    _add(frames, (*origin, *tile.shape[1:]), _squared(ring), out)


def add_entry_moments_about(
    entries: Entries, origin: tuple[int, ...], width: int, ring: Ring, out: AnyArray
) -> None:
    """Do the same for sparse frames, whose rows have `width` pixels."""
    _add_entries(tuple(entries), (*origin, width), _squared(ring), out)


@summing_kernel
def _add(frames: Any, window: Any, ring: Any, out: Any) -> None:
    flat, frame_step, row_step, swap = frames
    top, left, height, width = window
    centers, matrix, inner, outer = ring
    reach = math.sqrt(outer) + 2
    for f in range(out.shape[0]):
        cy, cx = centers[f, 0], centers[f, 1]
        if not (math.isfinite(cy) and math.isfinite(cx)):
            out[f, 0] = out[f, 1] = out[f, 2] = math.nan
            continue
        total, moment_y, moment_x = 0.0, 0.0, 0.0
        first_row, last_row = nearer_rows(cy - top, matrix, reach, height)
        for row in range(first_row, last_row):
            y = np.float64(top + row)
            dy = y - cy
            start, stop = nearer_columns(dy, cx - left, matrix, reach, width)
            first = f * frame_step + row * row_step
            along, right = 0.0, 0.0
            for column in range(start, stop):
                x = np.float64(left + column)
                value = value_at(flat, first + column, swap, np.float64)
                value = value if is_between(dy, x - cx, matrix, inner, outer) else 0.0
                along = plus(along, value)
                right = plus(right, times(value, x))
            total += along
            moment_y += along * y
            moment_x += right
        out[f, 0] += total
        out[f, 1] += moment_y
        out[f, 2] += moment_x


@summing_kernel
def _add_entries(entries: Any, window: Any, ring: Any, out: AnyArray) -> None:
    starts, pixels, values = entries
    top, left, width = window
    centers, matrix, inner, outer = ring
    for f in range(out.shape[0]):
        cy, cx = centers[f, 0], centers[f, 1]
        if not (math.isfinite(cy) and math.isfinite(cx)):
            out[f, 0] = out[f, 1] = out[f, 2] = math.nan
            continue
        total, moment_y, moment_x = 0.0, 0.0, 0.0
        for k in range(starts[f], starts[f + 1]):
            row, column = divmod(np.int64(pixels[k]), width)
            y, x = np.float64(top + row), np.float64(left + column)
            if is_between(y - cy, x - cx, matrix, inner, outer):
                value = np.float64(values[k])
                total += value
                moment_y += value * y
                moment_x += value * x
        out[f, 0] += total
        out[f, 1] += moment_y
        out[f, 2] += moment_x


def add_spread_about(tile: AnyArray, origin: tuple[int, ...], ring: Ring, moments: Any) -> None:
    """Merge the pixels of a tile in a ring into the moments of each frame.

    These are the number of pixels so far, float64, and the mean and spread of `add_spread`.
    """
    values = np.empty(tile.shape[1] * tile.shape[2], moments[1].dtype)
    _add_spread(tile, origin, _squared(ring), values, moments)


@reordering_kernel
def _add_spread(tile: Any, origin: Any, ring: Any, values: Any, moments: Any) -> None:
    """Merge the pixels of all frames; `values` is a buffer for the pixels of one frame."""
    (top, left), (pixels, mean, spread) = origin, moments
    centers, matrix, inner, outer = ring
    reach = math.sqrt(outer) + 2
    for f in range(tile.shape[0]):
        cy, cx = centers[f, 0], centers[f, 1]
        if not (math.isfinite(cy) and math.isfinite(cx)):
            spread[f] = math.nan
            continue
        n = 0
        first_row, last_row = nearer_rows(cy - top, matrix, reach, tile.shape[1])
        for row in range(first_row, last_row):
            dy = np.float64(top + row) - cy
            start, stop = nearer_columns(dy, cx - left, matrix, reach, tile.shape[2])
            for column in range(start, stop):
                dx = np.float64(left + column) - cx
                if is_between(dy, dx, matrix, inner, outer):
                    values[n] = tile[f, row, column]
                    n += 1
        if n == 0:
            continue
        _merge_spread(values[:n], pixels[f], f, mean, spread)
        pixels[f] += n


# additions in any order, so that several elements are added at once
@reordering_kernel
def _merge_spread(values: Any, before: float, f: int, mean: Any, spread: Any) -> None:
    """Merge values into the moments of a frame by the formula of Chan, Golub and LeVeque."""
    n = len(values)
    share = n / (before + n)
    new_mean = values.sum() / n
    squares = 0.0
    for k in range(n):
        deviation = values[k] - new_mean
        squares += deviation.real * deviation.real + deviation.imag * deviation.imag
    shift = new_mean - mean[f]
    mean[f] += shift * share
    spread[f] += squares + (shift.real * shift.real + shift.imag * shift.imag) * before * share


@reordering_kernel
def add_spread(tile: Any, ys: Any, xs: Any, before: int, mean: Any, spread: Any) -> None:
    """Merge some pixels of a tile, shape (frames, y, x), into the moments of each frame.

    `mean` and `spread`, the sum of |value - mean|**2, have the shape (frames,) and describe the
    `before` pixels of each frame so far. They are merged by the formula of Chan, Golub and LeVeque.
    """
    values = np.empty(ys.size, mean.dtype)
    for i in range(tile.shape[0]):
        for k in range(ys.size):
            values[k] = tile[i, ys[k], xs[k]]
        _merge_spread(values, before, i, mean, spread)
