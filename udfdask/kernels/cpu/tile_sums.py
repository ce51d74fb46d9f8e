"""Compute the sums that several UDFs need of a tile, while each value is read once.

These are the moments of each pixel over the frames, and of each frame the sum of its pixels and its
first moments. Kernels for each of them would read the tile from memory several times.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.kernels.cpu.compile import lean_inner_kernel, lean_kernel
from udfdask.kernels.cpu.exact_squares import MOST_SQUARES
from udfdask.kernels.cpu.frame_reductions import MOST_FRAMES, set_origins
from udfdask.kernels.cpu.intrinsics import minus, plus, times
from udfdask.kernels.cpu.merging import merged
from udfdask.kernels.cpu.reading import TOGETHER, eight_at, sum_of, value_at, write_eight
from udfdask.kernels.cpu.rows import as_native, rows_in_memory, wider
from udfdask.kernels.moment_arrays import Moments
from udfdask.types import AnyArray

SQUARES = {"u1": np.uint32, "i1": np.int32, "u2": np.uint64, "i2": np.int64}
"""Integers whose squares are added up exactly, with the dtype of the sums of squares."""

STRIP = 4096
"""Pixels of a frame at a time, at least one row: their sums stay in a cache."""

SEGMENT = 256
"""Pixels of a row at a time: 16-bit values times their column fit 32 bits, as
65535 * (0 + ... + 255) does."""


def sums_of(tile: AnyArray) -> tuple[Moments, AnyArray]:
    """Return the sums of a tile of shape (n, height, width), not empty, as `TileSums` has them.

    Sums of integers of up to 32 bits are exact, see `has_sums`.
    """
    n, height, width = tile.shape
    tile, swap = as_native(tile)
    flat, frame_step, row_step = rows_in_memory(tile)
    narrow = f"{flat.dtype.kind}{flat.dtype.itemsize}"
    exact = narrow in SQUARES
    sums_dtype: Any = wider(flat.dtype) if exact else np.float64
    most, squares_dtype = (MOST_SQUARES, SQUARES[narrow]) if exact else (MOST_FRAMES, np.float64)
    moments = Moments(*np.zeros((3, height * width)))
    of_frames = np.zeros((n, 3))
    pixels = width * min(height, max(1, STRIP // width))
    walk_sums(
        flat,
        n,
        frame_step,
        row_step,
        height,
        width,
        swap,
        most,
        None if exact else np.empty(pixels),
        np.empty(pixels, sums_dtype),
        np.empty(pixels, squares_dtype),
        np.empty(2 * TOGETHER, sums_dtype),
        *moments,
        of_frames,
    )
    return Moments(*(one.reshape(height, width) for one in moments)), of_frames


@lean_kernel
def walk_sums(
    flat: Any,
    count: int,
    frame_step: int,
    row_step: int,
    height: int,
    width: int,
    swap: Any,
    most: int,
    origins: Any,
    sums: Any,
    squares: Any,
    lanes: Any,
    origin: Any,
    excess: Any,
    varsum: Any,
    of_frames: Any,
) -> None:
    """Add up strips of rows, `most` frames at a time.

    The arrays from `origins` to `lanes` are temporary. `origins` is None if sums are exact without.
    """
    strip = len(sums) // width
    for top in range(0, height, strip):
        bottom = min(top + strip, height)
        first, n_pixels = top * width, (bottom - top) * width
        stop = first + n_pixels
        state = origin[first:stop], excess[first:stop], varsum[first:stop]
        for start in range(0, count, most):
            n = min(most, count - start)
            for j in range(n_pixels):
                sums[j] = squares[j] = 0
            if origins is not None:
                for y in range(top, bottom):
                    place, inside = start * frame_step + y * row_step, (y - top) * width
                    set_origins(origins[inside : inside + width], flat, place, swap)
            for f in range(start, start + n, TOGETHER):
                together = min(TOGETHER, start + n - f)
                for y in range(top, bottom):
                    for x in range(0, width, SEGMENT):
                        w = min(SEGMENT, width - x)
                        inside = (y - top) * width + x
                        some, their = sums[inside : inside + w], squares[inside : inside + w]
                        place = f * frame_step + y * row_step + x
                        if together == TOGETHER:
                            _add_eight(
                                flat, place, frame_step, swap, origins, inside, some, their, lanes
                            )
                        else:
                            for k in range(together):
                                lane = lanes[k:]
                                _add_one(flat, place, swap, origins, inside, some, their, lane)
                                place += frame_step
                        for k in range(together):
                            total = np.float64(lanes[k])
                            of_frames[f + k, 0] += total
                            of_frames[f + k, 1] += total * y
                            of_frames[f + k, 2] += np.float64(lanes[TOGETHER + k]) + total * x
            _merge(start, n, origins, sums, squares, *state)


@lean_inner_kernel
def _add_one(
    flat: Any,
    place: int,
    swap: Any,
    origins: Any,
    inside: int,
    sums: Any,
    squares: Any,
    lane: Any,
) -> None:
    """Add a part of a row; write its sum and its first moment along x to `lane`."""
    wide, wider = sums.dtype.type, squares.dtype.type
    total = moment = wide(0)
    for j in range(len(sums)):
        value = value_at(flat, place + j, swap, wide)
        total = plus(total, value)
        moment = plus(moment, times(value, wide(j)))
        value = minus(value, value_at(origins, inside + j, None, wide))
        sums[j] = plus(sums[j], value)
        squares[j] += wider(times(value, value))
    lane[0], lane[TOGETHER] = total, moment


@lean_inner_kernel
def _add_eight(
    flat: Any,
    place: int,
    step: int,
    swap: Any,
    origins: Any,
    inside: int,
    sums: Any,
    squares: Any,
    lanes: Any,
) -> None:
    """Add a part of a row of eight frames; write their sums and first moments to `lanes`."""
    wide, wider = sums.dtype.type, squares.dtype.type
    x, one = wide(0), wide(1)
    totals = moments = (x, x, x, x, x, x, x, x)
    for j in range(len(sums)):
        values = eight_at(flat, place, step, j, swap, wide)
        totals = plus(totals, values)
        moments = plus(moments, times(values, x))
        x = plus(x, one)
        values = minus(values, value_at(origins, inside + j, None, wide))
        sums[j] = plus(sums[j], sum_of(values, wide))
        # each square fits the dtype of the sums, and 64-bit products would be slow
        squares[j] += sum_of(times(values, values), wider)
    write_eight(lanes, 0, totals)
    write_eight(lanes, TOGETHER, moments)


@lean_inner_kernel
def _merge(
    before: int,
    count: int,
    origins: Any,
    sums: Any,
    squares: Any,
    origin: Any,
    excess: Any,
    varsum: Any,
) -> None:
    """Merge the moments of `count` frames into those of `before` other frames."""
    if origins is not None and before == 0:
        for j in range(len(origin)):
            origin[j] = origins[j]
    for j in range(len(origin)):
        if origins is None:
            total, shift = np.int64(sums[j]), 0.0
            # n * sum(x**2) and sum(x)**2 are below 2**62: every step but the last is exact
            deviation = np.float64(np.int64(squares[j]) * count - total * total) / count
        else:
            total, shift = sums[j], origins[j] - origin[j]
            deviation = squares[j] - total * total / count
        excess[j], varsum[j] = merged(
            before, count, shift, excess[j], varsum[j], np.float64(total), deviation
        )
