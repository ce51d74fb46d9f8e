"""Sum and first moments of the pixels of frames within a mask, in a single pass over a tile.

Each frame is added up column by column, without weights and with the row numbers as weights; the
column numbers are only multiplied with these sums. Eight rows are added at once in the columns that
they have in common.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from udfdask.kernels.cpu.compile import inner_kernel, summing_kernel
from udfdask.kernels.cpu.intrinsics import CACHE_LINE, PREFETCH_DISTANCE, plus, prefetch, times
from udfdask.kernels.cpu.rows import swapped
from udfdask.types import AnyArray

BAND = 256
"""Rows in a band: 16-bit values times their row fit 32 bits, as 65535 * (0 + ... + 255) does."""

TOGETHER = 8
"""Rows that are added at once."""

Pixels = tuple[int, int]
"""A run of pixels in a row: first column and stop."""


class Cover(NamedTuple):
    """The part of a mask in a tile, as runs of pixels, in bands of at most `BAND` rows.

    All numbers are unsigned: kernels need not check for negative indices.
    """

    bands: AnyArray
    """First row in the frame, end of the band in `eights`, end in `ones`; shape (bands, 3)."""
    eights: AnyArray
    """Runs in eight rows: first row in the band, column in the tile, index in memory, length."""
    ones: AnyArray
    """Runs in a single row, with the same four numbers."""
    first: int
    """First column of the tile in the frame."""
    width: int
    """Columns of the tile."""
    row_step: int
    """Number of values from one row to the next."""


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
    rows: list[list[Pixels]] = [[] for _ in range(height)]
    for y, start, stop in spans[(spans[:, 0] >= top) & (spans[:, 0] < top + height)].tolist():
        pixels = max(start - left, 0), min(stop - left, width)
        if pixels[0] < pixels[1]:
            rows[y - top].append(pixels)
    bands: list[tuple[int, ...]] = []
    eights: list[tuple[int, ...]] = []
    ones: list[tuple[int, ...]] = []
    for band in range(0, height, BAND):
        for y in range(band, min(band + BAND, height), TOGETHER):
            shared, others = _shared(rows[y : y + TOGETHER])
            for target, runs in ((eights, shared), (ones, others)):
                for offset, (start, stop) in runs:
                    row = y + offset
                    target.append((row - band, start, row * row_step + start, stop - start))
        bands.append((top + band, len(eights), len(ones)))
    return Cover(
        np.array(bands, dtype=np.uint64).reshape(-1, 3),
        np.array(eights, dtype=np.uint64).reshape(-1, 4),
        np.array(ones, dtype=np.uint64).reshape(-1, 4),
        left,
        width,
        row_step,
    )


def _shared(rows: list[list[Pixels]]) -> tuple[list[tuple[int, Pixels]], list[tuple[int, Pixels]]]:
    """Return the runs that eight rows have in common, with row 0, and the remaining runs."""
    shared: list[tuple[int, Pixels]] = []
    if len(rows) == TOGETHER and len({len(row) for row in rows}) == 1:
        for runs in zip(*rows, strict=True):
            start, stop = max(run[0] for run in runs), min(run[1] for run in runs)
            if start < stop:
                shared.append((0, (start, stop)))
    common = [pixels for _, pixels in shared]
    others = [
        (offset, rest)
        for offset, row in enumerate(rows)
        for run in row
        for rest in _without(run, common)
    ]
    return shared, others


def _without(run: Pixels, common: list[Pixels]) -> Iterator[Pixels]:
    """Yield the parts of a run outside the common runs, which are in order."""
    inside = [cut for cut in common if cut[0] < run[1] and run[0] < cut[1]]
    edges = [run[0], *itertools.chain.from_iterable(inside), run[1]]
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        if start < stop:
            yield start, stop


def add_moments(
    flat: AnyArray, frame_step: int, swap: bool | None, where: Cover, out: AnyArray
) -> None:
    """Add sum(I), sum(y * I) and sum(x * I) within a mask to `out`, shape (frames, 3), float64.

    `flat` and `frame_step` come from `rows_in_memory`, `swap` from `as_native`. The sums over a
    tile are exact for integers of up to 16 bits.
    """
    dtype: Any = np.float64
    if flat.dtype.kind in "iu" and flat.dtype.itemsize <= 2:
        dtype = np.int32 if flat.dtype.kind == "i" else np.uint32
    sums, weighted = np.empty(where.width, dtype), np.empty(where.width, dtype)
    bands, eights, ones, first, _, row_step = where
    steps = np.uint64(frame_step), np.uint64(row_step)
    _add_bands(flat, *steps, swap, bands, eights, ones, first, sums, weighted, out)


@summing_kernel
def _add_bands(
    flat: Any,
    frame_step: Any,
    row_step: Any,
    swap: Any,
    bands: Any,
    eights: Any,
    ones: Any,
    first: int,
    sums: Any,
    weighted: Any,
    out: Any,
) -> None:
    """Add the moments of all frames; `sums` and `weighted` are buffers, one value per column."""
    ahead = np.uint64(PREFETCH_DISTANCE // flat.itemsize)
    for f in range(out.shape[0]):
        start = np.uint64(f) * frame_step
        eight, one = 0, 0
        for b in range(bands.shape[0]):
            top, last_eight, last_one = bands[b]
            sums[:] = 0
            weighted[:] = 0
            while eight < last_eight:
                y, x, place, n = eights[eight]
                _prefetch_eight(flat, start + place + ahead, row_step, n)
                _add_eight(flat, start + place, row_step, swap, n, y, x, sums, weighted)
                eight += 1
            while one < last_one:
                y, x, place, n = ones[one]
                _add_one(flat, start + place, swap, n, y, x, sums, weighted)
                one += 1
            total, moment_y, moment_x = _moments(sums, weighted)
            out[f, 0] += total
            out[f, 1] += moment_y + total * top
            out[f, 2] += moment_x + total * first


@inner_kernel
def _prefetch_eight(flat: Any, place: Any, step: Any, n: Any) -> None:
    """Prefetch eight rows of n values; the first row starts at index `place`."""
    line = np.uint64(CACHE_LINE // flat.itemsize)
    for _ in range(8):
        for line_start in range(place, place + n, line):
            prefetch(flat, line_start)
        place += step


@inner_kernel
def _add_eight(
    flat: Any,
    p0: Any,
    step: Any,
    swap: Any,
    n: Any,
    y: Any,
    x: Any,
    sums: Any,
    weighted: Any,
) -> None:
    """Add n columns of eight rows to `sums`, from column x, and multiplied with y ... y + 7.

    Integers are added up in the 32 bits of `sums`, modulo 2**32.
    """
    wide = sums.dtype.type
    row = wide(y)
    # no literals: they are signed, and so would be their products with an unsigned step
    p1, two = p0 + step, step + step
    p2, p3, four = p0 + two, p1 + two, two + two
    p4, p5, p6, p7 = p0 + four, p1 + four, p2 + four, p3 + four
    for j in range(n):
        a, b = wide(swapped(flat[p0 + j], swap)), wide(swapped(flat[p1 + j], swap))
        c, d = wide(swapped(flat[p2 + j], swap)), wide(swapped(flat[p3 + j], swap))
        e, f = wide(swapped(flat[p4 + j], swap)), wide(swapped(flat[p5 + j], swap))
        g, h = wide(swapped(flat[p6 + j], swap)), wide(swapped(flat[p7 + j], swap))
        cd, gh = plus(c, d), plus(g, h)
        lower = plus(plus(e, f), gh)
        total = plus(plus(plus(a, b), cd), lower)
        # b + 2 c + 3 d + 4 e + 5 f + 6 g + 7 h
        half = plus(plus(cd, gh), plus(lower, lower))
        below = plus(plus(plus(b, d), plus(f, h)), plus(half, half))
        sums[x + j] = plus(sums[x + j], total)
        weighted[x + j] = plus(weighted[x + j], plus(times(total, row), below))


@inner_kernel
def _add_one(
    flat: Any, place: Any, swap: Any, n: Any, y: Any, x: Any, sums: Any, weighted: Any
) -> None:
    """Add n columns of a row to `sums`, from column x, and multiplied with y."""
    wide = sums.dtype.type
    row = wide(y)
    for j in range(n):
        value = wide(swapped(flat[place + j], swap))
        sums[x + j] = plus(sums[x + j], value)
        weighted[x + j] = plus(weighted[x + j], times(value, row))


@inner_kernel
def _moments(sums: Any, weighted: Any) -> Any:
    """Return the sum, the moment along y and the moment along x, from the sums of columns."""
    total, moment_y, moment_x = 0.0, 0.0, 0.0
    for j in range(len(sums)):
        value = np.float64(sums[j])
        total += value
        moment_y += np.float64(weighted[j])
        moment_x += value * j
    return total, moment_y, moment_x
