"""Sum and first moments of the pixels in a ring around a center of its own for each frame."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from udfdask.kernels.cpu.compile import summing_kernel
from udfdask.kernels.cpu.ellipses import is_between, nearer_columns, nearer_rows
from udfdask.kernels.cpu.intrinsics import plus, times
from udfdask.kernels.cpu.reading import value_at
from udfdask.kernels.cpu.rows import as_readable, rows_in_memory
from udfdask.kernels.cpu.sparse_entries import Entries
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
    place = (*origin, *tile.shape[1:])
    inner, outer = squares(*radii)
    _add(flat, frame_step, row_step, swap, place, centers, matrix, inner, outer, out)


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
    inner, outer = squares(*radii)
    _add_entries(*entries, *origin, width, centers, matrix, inner, outer, out)


@summing_kernel
def _add(
    flat: Any,
    frame_step: int,
    row_step: int,
    swap: Any,
    place: Any,
    centers: Any,
    matrix: Any,
    inner: float,
    outer: float,
    out: Any,
) -> None:
    """Add the moments of all frames."""
    top, left, height, width = place
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
    top: int,
    left: int,
    width: int,
    centers: AnyArray,
    matrix: Any,
    inner: float,
    outer: float,
    out: AnyArray,
) -> None:
    """Add the moments of the entries of all frames."""
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
