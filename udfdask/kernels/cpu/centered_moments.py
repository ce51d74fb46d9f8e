"""Moments and spread of frames around the center of each frame."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from udfdask.kernels.cpu.centered_rings import is_between, nearer_columns, nearer_rows
from udfdask.kernels.cpu.sparse_sums import Entries
from udfdask.kernels.numba_internals.compile import reordering_kernel, summing_kernel
from udfdask.kernels.numba_internals.reading import plus, times, value_at
from udfdask.kernels.numba_internals.rows import as_readable, rows_in_memory
from udfdask.types import AnyArray


def squares(inner: float | None, outer: float) -> tuple[float, float]:
    """Return what `is_between` takes; None as the inner radius stands for a disk."""
    return -1.0 if inner is None else float(inner) ** 2, float(outer) ** 2


def add_moments_about(
    tile: AnyArray,
    origin: tuple[int, ...],
    centers: AnyArray,
    matrix: tuple[float, float, float],
    radii: tuple[float | None, float],
    out: AnyArray,
) -> None:
    """Add sum(I), sum(y * I) and sum(x * I) in a ring to `out`, shape (frames, 3), float64.

    `tile` has the shape (frames, height, width), is not empty and has a real dtype. `origin` is its
    first pixel in the frame. The ring is ``inner < d <= outer`` around the center of each frame,
    shape (frames, 2), float64; a disk has None as the inner radius. `matrix` makes the ring round.
    If a center is not finite, the sums of its frame are NaN. Pixels outside the ring are not used.
    """
    tile, swap = as_readable(tile)
    flat, frame_step, row_step = rows_in_memory(tile)
    frames, window = (flat, frame_step, row_step, swap), (*origin, *tile.shape[1:])
    _add(frames, window, centers, matrix, squares(*radii), out)


def add_entry_moments_about(
    entries: Entries,
    origin: tuple[int, ...],
    width: int,
    centers: AnyArray,
    matrix: tuple[float, float, float],
    radii: tuple[float | None, float],
    out: AnyArray,
) -> None:
    """Do the same for sparse frames, whose rows have `width` pixels."""
    _add_entries(*entries, (*origin, width), centers, matrix, squares(*radii), out)


@summing_kernel
def _add(frames: Any, window: Any, centers: Any, matrix: Any, radii: Any, out: Any) -> None:
    """Add the moments of all frames; `radii` are squared."""
    flat, frame_step, row_step, swap = frames
    top, left, height, width = window
    inner, outer = radii
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
def _add_entries(
    starts: AnyArray,
    pixels: AnyArray,
    values: AnyArray,
    window: Any,
    centers: AnyArray,
    matrix: Any,
    radii: Any,
    out: AnyArray,
) -> None:
    """Add the moments of the entries of all frames."""
    top, left, width = window
    inner, outer = radii
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


def add_spread_about(
    tile: AnyArray,
    origin: tuple[int, ...],
    centers: AnyArray,
    matrix: tuple[float, float, float],
    radii: tuple[float | None, float],
    pixels: AnyArray,
    mean: AnyArray,
    spread: AnyArray,
) -> None:
    """Merge the pixels of a tile in a ring into the moments of each frame.

    `pixels`, float64, counts the pixels of each frame so far, `mean` and `spread` are those of
    `add_spread`, the other arguments those of `add_moments_about`. If a center is not finite, the
    spread of its frame becomes NaN.
    """
    values = np.empty(tile.shape[1] * tile.shape[2], mean.dtype)
    _add_spread(tile, origin, centers, matrix, squares(*radii), values, pixels, mean, spread)


@reordering_kernel
def _add_spread(
    tile: Any,
    origin: Any,
    centers: Any,
    matrix: Any,
    radii: Any,
    values: Any,
    pixels: Any,
    mean: Any,
    spread: Any,
) -> None:
    """Merge the pixels of all frames; `values` is a buffer for the pixels of one frame."""
    (top, left), (inner, outer) = origin, radii
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
def add_spread(
    tile: AnyArray, ys: AnyArray, xs: AnyArray, before: int, mean: AnyArray, spread: AnyArray
) -> None:
    """Merge some pixels of a tile, shape (frames, y, x), into the moments of each frame.

    `mean` and `spread`, the sum of |value - mean|**2, have the shape (frames,) and describe the
    `before` pixels of each frame so far. They are merged by the formula of Chan, Golub and LeVeque.
    """
    values = np.empty(ys.size, mean.dtype)
    for i in range(tile.shape[0]):
        for k in range(ys.size):
            values[k] = tile[i, ys[k], xs[k]]
        _merge_spread(values, before, i, mean, spread)
