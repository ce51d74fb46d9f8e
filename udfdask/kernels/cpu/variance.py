"""Variance of each pixel over frames, dense and sparse.

Sums of squared deviations over the frames of a tile, pixel by pixel. As those of `pixel_sums.py`,
kernels work on blocks of pixels, and on eight frames at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.kernels.cpu.exact_sums import (
    HALVES,
    LARGEST,
    MOST_SQUARES,
    PIECE,
    merge_columns,
    merged,
    square_columns,
)
from udfdask.kernels.cpu.sparse_sums import Entries
from udfdask.kernels.moment_arrays import LARGEST_ORIGIN, Moments
from udfdask.kernels.numba_internals.compile import contracting_kernel, kernel, lean_inner_kernel
from udfdask.kernels.numba_internals.reading import TOGETHER, eight_at, minus, sum_of, value_at
from udfdask.kernels.numba_internals.rows import as_real, as_rows, wider

MOST_FRAMES = 64
"""Largest number of frames with a common origin. With 32, merging them took a fifth of the time."""


@contracting_kernel
def deviate_columns(rows: Any, block: int, before: int, moments: Any) -> None:
    """Merge the moments of all rows, `block` pixels at a time, into those of `before` other rows.

    Deviations are taken from the first row, so that no offset is squared. If the first row is far
    from all others, rounding errors grow, but at most by a factor of the number of rows.
    """
    flat, count, step, width, swap = rows
    origin, excess, varsum = moments
    first, sums, squares = np.empty(block), np.empty(block), np.empty(block)
    each = 1.0 / count
    eights = count - count % TOGETHER
    for start in range(0, width, block):
        n = min(block, width - start)
        set_origins(first[:n], flat, start, swap)
        for j in range(n):
            sums[j] = squares[j] = 0.0
        for i in range(0, eights, TOGETHER):
            place = i * step + start
            for j in range(n):
                eight = eight_at(flat, place, step, j, swap, np.float64)
                eight = minus(eight, first[j])
                p, q, r, s, t, u, v, w = eight
                sums[j] += sum_of(eight, np.float64)
                # chains of fused operations leave the units for additions to differences and sums
                squares[j] = (p * p + (q * q + (r * r + (s * s + squares[j])))) + (
                    t * t + (u * u + (v * v + w * w))
                )
        for i in range(eights, count):
            place = i * step + start
            for j in range(n):
                x = value_at(flat, place + j, swap, np.float64) - first[j]
                sums[j] += x
                squares[j] += x * x
        stop = start + n
        origins, excesses, varsums = origin[start:stop], excess[start:stop], varsum[start:stop]
        if before == 0:
            for j in range(n):
                origins[j] = first[j]
        for j in range(n):
            shift, more = first[j] - origins[j], squares[j] - sums[j] * sums[j] * each
            mine, theirs = (excesses[j], varsums[j]), (sums[j], more)
            excesses[j], varsums[j] = merged(before, count, shift, mine, theirs)


@lean_inner_kernel
def set_origins(origins: AnyArray, flat: AnyArray, place: int, swap: Any) -> None:
    """Write the values of a row, and 0 for NaN and for values so large that sums overflow."""
    for j in range(len(origins)):
        x = value_at(flat, place + j, swap, np.float64)
        origins[j] = x if abs(x) <= LARGEST_ORIGIN else 0.0


BLOCK = 1 << 12
"""Pixels at a time: their sums stay in a cache. With fewer, frames are not read sequentially."""

SMALL_BLOCK = 512
"""Pixels at a time in few frames: the sums stay in the first-level cache, where they are merged."""

SQUARE_BLOCK = 1 << 14
"""Pixels at a time if squares are added up exactly: their sums stay in a cache."""


def add_moments(tile: AnyArray, before: int, moments: Moments) -> None:
    """Merge the frames of a tile, shape (n, *part), into the moments of `before` other frames."""
    if not tile.size:
        return
    if wider(tile.dtype) is None:
        tile = tile.astype(moments.excess.dtype)
    rows = as_rows(tile).as_real()
    real = _as_real(moments)
    dtype = f"{rows.flat.dtype.kind}{rows.flat.dtype.itemsize}"
    if dtype not in LARGEST:
        for group in rows.cut(MOST_FRAMES):
            block = min(SMALL_BLOCK if group.frames < 8 else BLOCK, rows.width)
            deviate_columns(tuple(group), block, before, tuple(real))
            before += group.frames
    else:
        block = min(SQUARE_BLOCK, rows.width)
        buffers = np.empty(block, wider(rows.flat.dtype)), np.empty(block, HALVES[dtype])
        largest = LARGEST[dtype]
        eights = tuple(np.empty(PIECE, number.dtype) for number in largest)
        for group in rows.cut(MOST_SQUARES):
            square_columns(tuple(group), largest, eights, buffers, before, tuple(real))
            before += group.frames
    _join_parts(real.varsum, moments)


def merge_moments(before: int, moments: Moments, count: int, more: Moments) -> None:
    """Merge the moments of `count` frames into the moments of `before` other frames."""
    if not count:
        return
    if not before:  # a run of a single chunk compiles no kernel to merge
        for mine, theirs in zip(moments, more, strict=True):
            mine[...] = theirs
        return
    real = _as_real(moments)
    merge_columns(before, tuple(real), count, tuple(_as_real(more)))
    _join_parts(real.varsum, moments)


def _as_real(moments: Moments) -> Moments:
    """Return flat moments of real numbers: complex ones are pairs, whose varsums are added up."""
    origin, excess = as_real(moments.origin), as_real(moments.excess)
    varsum = moments.varsum.reshape(-1)
    if moments.excess.dtype.kind == "c":
        varsum = np.zeros(excess.size)
        varsum[::2] = moments.varsum.reshape(-1)
    return Moments(origin, excess, varsum)


def _join_parts(varsum: AnyArray, moments: Moments) -> None:
    """Add the squared deviations of real and imaginary parts, for complex numbers."""
    if moments.excess.dtype.kind == "c":
        np.add(varsum[::2], varsum[1::2], out=moments.varsum.reshape(-1))


def add_entry_moments(entries: Entries, before: int, moments: Moments) -> None:
    """Merge sparse frames into the moments of `before` other frames."""
    values = entries.values
    exact = values.dtype.kind in "iu" and values.itemsize <= 2  # sums of their squares are exact
    for group in entries.cut(MOST_SQUARES):
        if not group.frames:
            continue
        more = Moments(*(np.zeros_like(part) for part in moments))
        origin, excess, squares = (part.reshape(-1) for part in more)
        if exact:
            both = np.zeros((len(squares), 2), np.int64)
            _square(group.pixels, group.values, both)
            _finish_squares(both, group.frames, excess, squares)
        else:
            _deviate(group.pixels, group.values, group.frames, origin, excess, squares)
        merge_moments(before, moments, group.frames, more)
        before += group.frames


@kernel
def _square(pixels: AnyArray, values: AnyArray, both: AnyArray) -> None:
    """Add values and their squares, which are next to each other in `both`, shape (pixels, 2)."""
    for k in range(len(values)):
        x = np.int64(values[k])
        p = pixels[k]
        both[p, 0] += x
        both[p, 1] += x * x


@kernel
def _finish_squares(both: AnyArray, count: int, sums: Any, squares: AnyArray) -> None:
    """Convert sums of squares of at most 32768 frames to sums of squared deviations."""
    each = 1.0 / count
    for p in range(len(squares)):
        s = both[p, 0]
        sums[p] = s
        # n * sum(x**2) and sum(x)**2 are below 2**62: every step but the last is exact
        squares[p] = np.float64(both[p, 1] * count - s * s) * each


@contracting_kernel
def _deviate(pixels: Any, values: Any, count: int, origin: Any, excess: Any, squares: Any) -> None:
    """Use the mean as the origin, then add deviations; the excess is the rest of rounding it."""
    zeros = np.full(len(origin), count)
    for k in range(len(values)):
        p = pixels[k]
        origin[p] += values[k]
        zeros[p] -= 1
    for p in range(len(origin)):
        mean = origin[p] / count
        origin[p] = mean if abs(mean) <= LARGEST_ORIGIN else 0
        squares[p] = zeros[p] * (origin[p].real * origin[p].real + origin[p].imag * origin[p].imag)
        excess[p] = -zeros[p] * origin[p]
    for k in range(len(values)):
        p = pixels[k]
        apart = values[k] - origin[p]
        excess[p] += apart
        squares[p] += apart.real * apart.real + apart.imag * apart.imag
    for p in range(len(origin)):
        rest = excess[p]
        squared = squares[p] - (rest.real * rest.real + rest.imag * rest.imag) / count
        if squared < 0:  # due to rounding, for a constant pixel
            squared = 0.0
        squares[p] = squared
