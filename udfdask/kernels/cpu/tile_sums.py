"""All sums of the frames of a tile at once.

These are the moments of each pixel over the frames, and of each frame the sum of its pixels and its
first moments. Kernels for each of them would read the tile from memory several times.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.kernels.cpu.exact_sums import HALVES, MOST_SQUARES, merged, parabolas_of, squares_of
from udfdask.kernels.cpu.variance import MOST_FRAMES, set_origins
from udfdask.kernels.moment_arrays import Moments
from udfdask.kernels.numba_internals.compile import (
    lean_inner_kernel,
    lean_kernel,
    pasted_inner_kernel,
)
from udfdask.kernels.numba_internals.reading import minus, plus, times, value_at
from udfdask.kernels.numba_internals.rows import as_native, rows_in_memory, wider
from udfdask.kernels.numba_internals.vector_sums import FRAMES, LONGEST, STATE, VECTOR_BYTES
from udfdask.kernels.numba_internals.vector_sums import add_frames as add_in_registers

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
    halves_dtype = HALVES.get(f"{flat.dtype.kind}{flat.dtype.itemsize}")
    exact = halves_dtype is not None
    sums_dtype: Any = wider(flat.dtype) if exact else np.dtype(np.float64)
    lanes = VECTOR_BYTES // sums_dtype.itemsize
    moments = Moments(*np.empty((3, height * width)))
    of_frames = np.zeros((n, 3))
    pixels = width * min(height, max(1, LONGEST * lanes // width))
    buffers = (
        np.empty(pixels, sums_dtype),
        np.empty(pixels, halves_dtype or np.float64),
        np.empty((STATE, FRAMES, lanes), sums_dtype),
    )
    walk_sums(
        (flat, frame_step, row_step, swap),
        (n, height, width),
        MOST_SQUARES if exact else MOST_FRAMES,
        sums_dtype.type(np.iinfo(flat.dtype).max) if exact else None,
        None if exact else np.empty(pixels),
        buffers,
        tuple(moments),
        of_frames,
    )
    return Moments(*(one.reshape(height, width) for one in moments)), of_frames


@lean_kernel
def walk_sums(
    source: Any,
    shape: Any,
    most: int,
    largest: Any,
    origins: Any,
    buffers: Any,
    moments: Any,
    of_frames: Any,
) -> None:
    """Add up strips of rows, `most` frames at a time.

    `largest` is the largest value of an integer dtype whose sums are exact without `origins`, see
    `square_columns`. One of them is None. `origins` and the buffers are temporary: sums and squares
    of pixels, and `state`.
    """
    flat, frame_step, row_step, swap = source
    count, height, width = shape
    sums, squares, _ = buffers
    origin, excess, varsum = moments
    strip = len(sums) // width
    for top in range(0, height, strip):
        rows = min(strip, height - top)
        first, stop = top * width, (top + rows) * width
        merged_so_far = origin[first:stop], excess[first:stop], varsum[first:stop]
        for start in range(0, count, most):
            n = min(most, count - start)
            for j in range(stop - first):
                sums[j] = squares[j] = 0
            place = start * frame_step + top * row_step
            if origins is not None:
                for y in range(rows):
                    to = origins[y * width : (y + 1) * width]
                    set_origins(to, flat, place + y * row_step, swap)
            for f in range(start, start + n, FRAMES):
                some = of_frames[f : min(f + FRAMES, start + n)]
                _add_group(source, place, (rows, width), largest, origins, buffers, top, some)
                place += FRAMES * frame_step
            _merge(start, n, largest, origins, buffers, merged_so_far)


@pasted_inner_kernel
def _add_group(
    source: Any,
    place: int,
    size: Any,
    largest: Any,
    origins: Any,
    buffers: Any,
    top: int,
    of_frames: Any,
) -> None:
    """Add the rows of at most `FRAMES` frames from row `top` on to the sums of pixels and frames.

    The rows of the first frame start at `place`.
    """
    flat, frame_step, row_step, swap = source
    rows, width = size
    sums, squares, state = buffers
    lanes, together = state.shape[2], len(of_frames)
    in_vectors = width - width % lanes if together == FRAMES else 0
    for x in range(0, in_vectors, LONGEST * lanes):
        n = min(LONGEST, (in_vectors - x) // lanes)
        at = place + x
        add_in_registers(
            flat, at, frame_step, row_step, rows, n, swap, width, x, origins, sums, squares, state
        )
        _note(state, rows, n, largest, top, x, of_frames)
    for x in range(in_vectors, width, SEGMENT):
        w = min(SEGMENT, width - x)
        for k in range(together):
            for y in range(rows):
                at, inside = place + k * frame_step + y * row_step + x, y * width + x
                some, their = sums[inside : inside + w], squares[inside : inside + w]
                total, moment = _add_one(flat, at, swap, largest, inside, origins, some, their)
                _add_to(of_frames[k], total, total * (top + y), moment + total * x)


@lean_inner_kernel
def _add_to(sums: Any, total: Any, moment_y: Any, moment_x: Any) -> None:
    sums[0] += total
    sums[1] += moment_y
    sums[2] += moment_x


@lean_inner_kernel
def _note(
    state: Any, rows: int, vectors: int, largest: Any, top: int, left: int, of_frames: Any
) -> None:
    """Add the sums of frames, as `add_frames` writes them, to those of the frames.

    The first pixel that it read was (top, left).
    """
    lanes = state.shape[2]
    for k in range(len(of_frames)):
        total = below = right = 0.0
        for lane in range(lanes):
            t, x, y = state[0, k, lane], state[1, k, lane], state[2, k, lane]
            if largest is not None:
                t, x, y = np.int64(t), np.int64(x), np.int64(y)
                # vectors that were added later are in fewer of the sums that were added up
                later = rows * vectors * t - x
                x = (later - vectors * (rows * t - y)) * lanes + t * lane
            total += t
            below += rows * t - y
            right += x
        _add_to(of_frames[k], total, below + total * top, right + total * left)


@lean_inner_kernel
def _add_one(
    flat: Any, at: int, swap: Any, largest: Any, inside: int, origins: Any, sums: Any, squares: Any
) -> Any:
    """Add a part of a row to the sums of pixels; return its sum and its first moment along x."""
    wide, wider = sums.dtype.type, squares.dtype.type
    total = moment = wide(0)
    for j in range(len(sums)):
        value = value_at(flat, at + j, swap, wide)
        total = plus(total, value)
        moment = plus(moment, times(value, wide(j)))
        value = minus(value, value_at(origins, inside + j, None, wide))
        sums[j] = plus(sums[j], value)
        square = times(value, value)
        if largest is None:
            squares[j] += square
        else:
            squares[j] += wider(np.uint32(parabolas_of(largest, value, square)) >> np.uint32(1))
    return np.float64(total), np.float64(moment)


@lean_inner_kernel
def _merge(before: int, count: int, largest: Any, origins: Any, buffers: Any, moments: Any) -> None:
    """Merge the moments of `count` frames into those of `before` other frames."""
    sums, squares, _ = buffers
    origin, excess, varsum = moments
    each = 1.0 / count
    for j in range(len(origin)):
        start = 0.0
        if origins is not None:
            start = origins[j]
        total = np.float64(sums[j])
        deviation = _deviation(largest, sums[j], squares[j], count, each)
        if before == 0:
            origin[j], excess[j], varsum[j] = start, total, deviation
        else:
            shift = start - origin[j]
            mine, theirs = (excess[j], varsum[j]), (total, deviation)
            excess[j], varsum[j] = merged(before, count, shift, mine, theirs)


@lean_inner_kernel
def _deviation(largest: Any, total: Any, squares: Any, count: int, each: float) -> Any:
    """Return the sum of squared deviations from the mean of `count` values; `each` is 1 / count."""
    if largest is None:
        return squares - total * total * each
    s = np.int64(total)
    # n * sum(x**2) and sum(x)**2 are below 2**62: every step but the last is exact
    return np.float64(squares_of(largest, s, 2 * np.int64(squares)) * count - s * s) * each
