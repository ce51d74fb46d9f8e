"""First moments of frames: sums of pixels times their positions.

A mask consists of runs of pixels: eight rows where these have columns in common, and single rows.
Kernels add up the sum of a run, and its moments about its first pixel, in registers. Column sums in
a buffer took 1.2 to 2 times as long. Only integers of 8 and 16 bits are added up eight rows at a
time: for others, this would save no operations, and memory is read faster in order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from udfdask.base.aligned import CACHE_LINE
from udfdask.base.types import AnyArray
from udfdask.kernels.cpu.sparse_sums import Entries
from udfdask.kernels.numba_internals.compile import inner_kernel, summing_kernel
from udfdask.kernels.numba_internals.reading import (
    PREFETCH_DISTANCE,
    TOGETHER,
    eight_at,
    plus,
    prefetch,
    sum_of,
    times,
    value_at,
)

ZEROS: dict[str, tuple[Any, Any]] = {
    "u1": (np.uint16(0), np.uint32(0)),
    "i1": (np.int16(0), np.int32(0)),
    "u2": (np.uint32(0), np.uint32(0)),
    "i2": (np.int32(0), np.int32(0)),
}
"""Dtypes that are added up in eight rows at once, each with 0 in two wider dtypes: for the sum of
eight values times 0 ... 7, and for the moments of a run."""

LONGEST = 128
"""Columns of eight rows whose sums and moments fit 32 bits: 8 * 65535 * (0 + ... + 127) does."""


class Cover(NamedTuple):
    """The part of a mask in a tile with rows of `width` pixels, `row_step` values apart, as runs.

    `runs`, shape (runs, 5): number of rows (8 or 1), first row and column in the frame, index in
    memory, length. They are unsigned: kernels need not check for negative indices.
    """

    runs: AnyArray
    width: int
    row_step: int


def spans_of(mask: AnyArray) -> AnyArray:
    """Return the runs of True pixels of a mask, (row, first column, stop), in C order, int64."""
    edges = np.diff(mask.astype(np.int8), axis=1, prepend=0, append=0)
    rows, starts = np.nonzero(edges == 1)
    stops = np.nonzero(edges == -1)[1]
    return np.stack([rows, starts, stops], axis=1).astype(np.int64)


def cover(spans: AnyArray, origin: tuple[int, ...], shape: tuple[int, ...], row_step: int) -> Cover:
    """Return the part of `spans_of(mask)` in a tile.

    The first pixel of the tile is pixel `origin`, (y, x), of the frame. `shape` is the shape of its
    frames, `row_step` the number of elements from one row to the next.
    """
    (top, left), (height, width) = origin, shape
    inside = np.zeros(shape, bool)
    for y, start, stop in spans[(spans[:, 0] >= top) & (spans[:, 0] < top + height)].tolist():
        inside[y - top, max(start - left, 0) : max(stop - left, 0)] = True
    eights = inside[: height - height % TOGETHER].reshape(-1, TOGETHER, width)
    # rows with other numbers of runs have little in common
    counts = np.diff(eights.astype(np.int8), axis=2, prepend=0).clip(0).sum(axis=2)
    common = eights.all(axis=1) & (counts == counts[:, :1]).all(axis=1, keepdims=True)
    shared = spans_of(common) * (TOGETHER, 1, 1)
    eights &= ~common[:, np.newaxis]
    single = spans_of(inside)
    y, start, stop = np.concatenate([shared, single]).T
    rows = np.repeat((TOGETHER, 1), (len(shared), len(single)))
    runs = np.stack([rows, top + y, left + start, y * row_step + start, stop - start], axis=1)
    in_order = np.lexsort((start, y, -rows, y // TOGETHER))
    return Cover(runs[in_order].astype(np.uint64), width, row_step)


def add_moments(
    flat: AnyArray, frame_step: int, swap: bool | None, where: Cover, out: AnyArray
) -> None:
    """Add sum(I), sum(y * I) and sum(x * I) within a mask to `out`, shape (frames, 3), float64.

    `flat` and `frame_step` come from `rows_in_memory`, `swap` from `as_native`. The sums over a
    tile are exact for integers of up to 16 bits.
    """
    columns = np.arange(where.width, dtype=np.float64)
    frames = flat, np.uint64(frame_step), np.uint64(where.row_step), swap
    zeros = ZEROS.get(f"{flat.dtype.kind}{flat.dtype.itemsize}")
    _add(frames, columns, where.runs, zeros, out)


@summing_kernel
def _add(frames: Any, columns: Any, runs: Any, zeros: Any, out: Any) -> None:
    """Add the moments of all frames: of eight rows at a time, as integers, if there are `zeros`."""
    flat, frame_step, row_step, swap = frames
    most = np.uint64(LONGEST)
    # the processor itself reads ahead if eight rows are a short piece of memory: prefetching them
    # took a third more time, while without prefetching wide frames took three times as long
    is_wide = row_step > np.uint64(2 * CACHE_LINE // flat.itemsize)
    for f in range(out.shape[0]):
        start = np.uint64(f) * frame_step
        total, moment_y, moment_x = 0.0, 0.0, 0.0
        for k in range(runs.shape[0]):
            rows, y, x, place, length = runs[k]
            place += start
            if zeros is None:
                for row in range(y, y + rows):
                    sums, right = _sum_row(flat, place, swap, columns, length)
                    total += sums
                    moment_y += sums * row
                    moment_x += right + sums * x
                    place += row_step
            else:
                while length > 0:
                    n = min(length, most)
                    if rows == 8:
                        if is_wide:
                            _prefetch_eight(flat, place, row_step, n)
                        sums, below, right = _sum_eight(flat, place, row_step, swap, zeros, n)
                    else:
                        sums, right = _sum_row(flat, place, swap, columns, n)
                        below = 0.0
                    total += sums
                    moment_y += below + sums * y
                    moment_x += right + sums * x
                    place, x, length = place + n, x + n, length - n
        out[f, 0] += total
        out[f, 1] += moment_y
        out[f, 2] += moment_x


@inner_kernel
def _prefetch_eight(flat: Any, place: Any, step: Any, n: Any) -> None:
    """Prefetch n columns of eight rows, some way after those that start at index `place`."""
    line = np.uint64(CACHE_LINE // flat.itemsize)
    place += np.uint64(PREFETCH_DISTANCE // flat.itemsize)
    for _ in range(8):
        for j in range(np.uint64(0), n, line):
            prefetch(flat, place + j)
        place += step


@inner_kernel
def _sum_eight(flat: Any, place: Any, step: Any, swap: Any, zeros: Any, n: Any) -> Any:
    """Return sum, moment along y and moment along x of n columns of eight rows, from a place."""
    zero, total = zeros
    narrow, wide = type(zero), type(total)
    moment_y = moment_x = total
    for j in range(n):
        eight = eight_at(flat, place, step, j, swap, narrow)
        column = wide(sum_of(eight, narrow))
        total = plus(total, column)
        moment_y = plus(moment_y, wide(_below(eight)))
        moment_x = plus(moment_x, times(column, wide(np.int32(j))))
    return np.float64(total), np.float64(moment_y), np.float64(moment_x)


@inner_kernel
def _below(eight: Any) -> Any:
    """Return b + 2 c + 3 d + 4 e + 5 f + 6 g + 7 h of eight numbers a to h, without products."""
    _, b, c, d, e, f, g, h = eight
    gh = plus(g, h)
    lower = plus(plus(e, f), gh)
    half = plus(plus(plus(c, d), gh), plus(lower, lower))
    return plus(plus(plus(b, d), plus(f, h)), plus(half, half))


@inner_kernel
def _sum_row(flat: Any, place: Any, swap: Any, columns: Any, n: Any) -> Any:
    """Return the sum of n values of a row, and of their products with `columns`."""
    total, moment_x = 0.0, 0.0
    for j in range(n):
        value = value_at(flat, place + j, swap, np.float64)
        total = plus(total, value)
        moment_x = plus(moment_x, times(value, columns[j]))
    return total, moment_x


def add_entry_first_moments(
    entries: Entries, origin: tuple[int, ...], width: int, inside: AnyArray | None, out: AnyArray
) -> None:
    """Add sum(I), sum(y * I) and sum(x * I) of each frame to `out`, shape (frames, 3), float64.

    The first pixel of the part is pixel `origin`, (y, x), of the frame; its rows have `width`
    pixels. `inside`, flat, uint8, is 1 for the pixels that count; None counts all pixels.
    """
    if not len(entries.values):
        return
    _add_moments(*entries, inside, (*origin, width), out)


@inner_kernel
def _place(pixel: Any, each: float, width: float) -> Any:
    """Return row and column of a pixel; `each` is 1 / width. It is faster than integer division.

    It is exact: (pixel + 0.5) / width is at least 0.5 / width away from an integer, which is more
    than the rounding error for fewer than 2**50 pixels.
    """
    place = np.float64(pixel)
    y = np.floor((place + 0.5) * each)
    return y, place - y * width


@inner_kernel
def _prefetch_after(part: AnyArray) -> None:
    """Prefetch as many bytes as a part of an array has, `PREFETCH_DISTANCE` bytes later."""
    for k in range(0, len(part), CACHE_LINE // part.itemsize):
        prefetch(part, k + PREFETCH_DISTANCE // part.itemsize)


@inner_kernel
def _is_inside(inside: Any, pixel: Any) -> Any:
    """Return whether a pixel counts; no code is generated if `inside` is None."""
    if inside is None:
        return True
    return inside[pixel] != 0


@summing_kernel
def _add_moments(
    starts: Any, pixels: AnyArray, values: AnyArray, inside: Any, window: Any, out: AnyArray
) -> None:
    """Add the moments of the pixels inside, or of all pixels if `inside` is None."""
    top, left, width = window
    wide, each = np.float64(width), 1.0 / np.float64(width)
    for f in range(len(out)):
        own_pixels, own = pixels[starts[f] : starts[f + 1]], values[starts[f] : starts[f + 1]]
        if inside is None:  # otherwise the loop does more per value, and memory is fast enough
            _prefetch_after(own_pixels)
            _prefetch_after(own)
        total, along_y, along_x = 0.0, 0.0, 0.0
        for k in range(len(own)):
            if _is_inside(inside, own_pixels[k]):
                value = np.float64(own[k])
                y, x = _place(own_pixels[k], each, wide)
                total += value
                along_y += value * y
                along_x += value * x
        out[f, 0] += total
        out[f, 1] += along_y + total * top
        out[f, 2] += along_x + total * left
