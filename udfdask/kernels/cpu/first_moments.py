"""Sum and first moments of the pixels of frames within a mask, in one walk over a tile.

Of each frame the columns are added up, and once more with their rows as weights; only then come
products with the columns. Eight rows go into one addition where they share columns.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from udfdask.kernels.cpu.compile import inner_kernel, summing_kernel
from udfdask.kernels.cpu.intrinsics import AHEAD, LINE, plus, prefetch, times
from udfdask.kernels.cpu.rows import turned
from udfdask.types import AnyArray

BAND = 256
"""Rows over which 16-bit values times their position fit 32 bits: 65535 * (0 + ... + 255)."""

TOGETHER = 8
"""Rows of one addition."""

Pixels = tuple[int, int]
"""First column, and the column behind the last."""


class Cover(NamedTuple):
    """What of a mask lies in a tile, in bands of at most `BAND` rows.

    All numbers are unsigned, which spares kernels a look at negative indices.
    """

    bands: AnyArray
    """First row in the frame, then where the eights and the ones of a band end, (bands, 3)."""
    eights: AnyArray
    """Pieces of eight rows: row in the band, column in the tile, place in memory, length."""
    ones: AnyArray
    """Pieces of a single row, alike."""
    first: int
    """First column of the tile, in pixels of the frame."""
    width: int
    """Columns of the tile."""
    row_step: int
    """Values from one row to the next."""


def spans_of(mask: AnyArray) -> AnyArray:
    """Return the runs of pixels of a boolean mask, shape (runs, 3), int64, in C order.

    Each is the row, the first column, and the column behind the last.
    """
    edges = np.diff(mask.astype(np.int8), axis=1, prepend=0, append=0)
    rows, starts = np.nonzero(edges == 1)
    stops = np.nonzero(edges == -1)[1]
    return np.stack([rows, starts, stops], axis=1).astype(np.int64)


def cover(spans: AnyArray, origin: tuple[int, ...], shape: tuple[int, ...], row_step: int) -> Cover:
    """Return what of `spans_of(mask)` lies in a tile.

    Its first pixel is pixel `origin`, (y, x), of the frame, its frames have the given shape, and
    its rows lie `row_step` elements apart.
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
            for pieces, found in ((eights, shared), (ones, others)):
                for below, (start, stop) in found:
                    row = y + below
                    pieces.append((row - band, start, row * row_step + start, stop - start))
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
    """Return what eight rows share, beside row 0, and what each has beside that."""
    shared: list[tuple[int, Pixels]] = []
    if len(rows) == TOGETHER and len({len(row) for row in rows}) == 1:
        for runs in zip(*rows, strict=True):
            start, stop = max(run[0] for run in runs), min(run[1] for run in runs)
            if start < stop:
                shared.append((0, (start, stop)))
    cuts = [pixels for _, pixels in shared]
    others = [
        (below, piece)
        for below, row in enumerate(rows)
        for run in row
        for piece in _without(run, cuts)
    ]
    return shared, others


def _without(run: Pixels, cuts: list[Pixels]) -> Iterator[Pixels]:
    """Yield what of a run lies outside of others, which are in order."""
    inside = [cut for cut in cuts if cut[0] < run[1] and run[0] < cut[1]]
    edges = [run[0], *itertools.chain.from_iterable(inside), run[1]]
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        if start < stop:
            yield start, stop


def add_moments(
    flat: AnyArray, frame_step: int, turn: bool | None, where: Cover, out: AnyArray
) -> None:
    """Add sum(I), sum(y * I) and sum(x * I) within a mask to `out`, shape (frames, 3), float64.

    `flat` and `frame_step` come from `rows_in_memory`, `turn` from `as_native`. Over a tile, sums
    of whole numbers of up to 16 bits are exact.
    """
    dtype: Any = np.float64
    if flat.dtype.kind in "iu" and flat.dtype.itemsize <= 2:
        dtype = np.int32 if flat.dtype.kind == "i" else np.uint32
    sums, weighted = np.empty(where.width, dtype), np.empty(where.width, dtype)
    bands, eights, ones, first, _, row_step = where
    steps = np.uint64(frame_step), np.uint64(row_step)
    _add_bands(flat, *steps, turn, bands, eights, ones, first, sums, weighted, out)


@summing_kernel
def _add_bands(
    flat: Any,
    frame_step: Any,
    row_step: Any,
    turn: Any,
    bands: Any,
    eights: Any,
    ones: Any,
    first: int,
    sums: Any,
    weighted: Any,
    out: Any,
) -> None:
    """Add the moments of all frames; `sums` and `weighted` are room for those of each column."""
    ahead = np.uint64(AHEAD // flat.itemsize)
    for f in range(out.shape[0]):
        start = np.uint64(f) * frame_step
        eight, one = 0, 0
        for b in range(bands.shape[0]):
            top, last_eight, last_one = bands[b]
            sums[:] = 0
            weighted[:] = 0
            while eight < last_eight:
                y, x, place, n = eights[eight]
                _ask_for_eight(flat, start + place + ahead, row_step, n)
                _add_eight(flat, start + place, row_step, turn, n, y, x, sums, weighted)
                eight += 1
            while one < last_one:
                y, x, place, n = ones[one]
                _add_one(flat, start + place, turn, n, y, x, sums, weighted)
                one += 1
            total, moment_y, moment_x = _moments(sums, weighted)
            out[f, 0] += total
            out[f, 1] += moment_y + total * top
            out[f, 2] += moment_x + total * first


@inner_kernel
def _ask_for_eight(flat: Any, place: Any, step: Any, n: Any) -> None:
    """Ask for eight rows of n values, the first of them at a place."""
    line = np.uint64(LINE // flat.itemsize)
    for _ in range(8):
        for line_start in range(place, place + n, line):
            prefetch(flat, line_start)
        place += step


@inner_kernel
def _add_eight(
    flat: Any,
    p0: Any,
    step: Any,
    turn: Any,
    n: Any,
    y: Any,
    x: Any,
    sums: Any,
    weighted: Any,
) -> None:
    """Add eight rows of n values to columns from x on, and their products with y to y + 7.

    Values of integers are added up in the 32 bits of `sums`, modulo 2**32.
    """
    wide = sums.dtype.type
    row = wide(y)
    # a literal is signed, and so would be its product with a step
    p1, two = p0 + step, step + step
    p2, p3, four = p0 + two, p1 + two, two + two
    p4, p5, p6, p7 = p0 + four, p1 + four, p2 + four, p3 + four
    for j in range(n):
        a, b = wide(turned(flat[p0 + j], turn)), wide(turned(flat[p1 + j], turn))
        c, d = wide(turned(flat[p2 + j], turn)), wide(turned(flat[p3 + j], turn))
        e, f = wide(turned(flat[p4 + j], turn)), wide(turned(flat[p5 + j], turn))
        g, h = wide(turned(flat[p6 + j], turn)), wide(turned(flat[p7 + j], turn))
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
    flat: Any, place: Any, turn: Any, n: Any, y: Any, x: Any, sums: Any, weighted: Any
) -> None:
    """Add a row, and its product with y."""
    wide = sums.dtype.type
    row = wide(y)
    for j in range(n):
        value = wide(turned(flat[place + j], turn))
        sums[x + j] = plus(sums[x + j], value)
        weighted[x + j] = plus(weighted[x + j], times(value, row))


@inner_kernel
def _moments(sums: Any, weighted: Any) -> Any:
    """Return sum and moments, (sum, along y, along x), from those of the columns."""
    total, moment_y, moment_x = 0.0, 0.0, 0.0
    for j in range(len(sums)):
        value = np.float64(sums[j])
        total += value
        moment_y += np.float64(weighted[j])
        moment_x += value * j
    return total, moment_y, moment_x
