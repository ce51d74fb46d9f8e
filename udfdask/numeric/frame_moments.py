"""Sum and first moments of the pixels of frames within a mask, in one walk over a tile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from udfdask.numeric.compiled import summing_kernel
from udfdask.types import AnyArray

LONGEST = 256
"""Pixels over which 16-bit values times their position fit 32 bits: 65535 * (0 + ... + 255)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretches:
    """The pieces of pixel rows that lie within a mask and a tile: int64, one value for each."""

    y: AnyArray
    """Row in the frame, in pixels."""
    x: AnyArray
    """First column in the frame, in pixels."""
    place: AnyArray
    """Where it begins in the memory of a frame of the tile, in elements."""
    length: AnyArray
    """Number of pixels, at most `LONGEST`."""


def spans_of(mask: AnyArray) -> AnyArray:
    """Return the runs of pixels of a boolean mask, shape (runs, 3), int64, in C order.

    Each is the row, the first column, and the column behind the last; none is longer than
    `LONGEST`.
    """
    edges = np.diff(mask.astype(np.int8), axis=1, prepend=0, append=0)
    first, last = edges[:, :-1] == 1, edges[:, 1:] == -1
    breaks = np.arange(LONGEST, mask.shape[1], LONGEST)
    first[:, breaks] |= mask[:, breaks]
    last[:, breaks - 1] |= mask[:, breaks - 1]
    rows, starts = np.nonzero(first)
    stops = np.nonzero(last)[1] + 1
    return np.stack([rows, starts, stops], axis=1).astype(np.int64)


def cut_spans(
    spans: AnyArray, origin: tuple[int, ...], shape: tuple[int, ...], row_step: int
) -> Stretches:
    """Return what of `spans_of(mask)` lies in a tile.

    Its first pixel is pixel `origin`, (y, x), of the frame, its frames have the given shape, and
    its rows lie `row_step` elements apart.
    """
    (oy, ox), (height, width) = origin, shape
    y = spans[:, 0]
    start, stop = np.maximum(spans[:, 1], ox), np.minimum(spans[:, 2], ox + width)
    inside = (y >= oy) & (y < oy + height) & (start < stop)
    y, start, stop = y[inside], start[inside], stop[inside]
    return Stretches(y=y, x=start, place=(y - oy) * row_step + start - ox, length=stop - start)


def add_moments(flat: AnyArray, frame_step: int, stretches: Stretches, out: AnyArray) -> None:
    """Add sum(I), sum(y * I) and sum(x * I) within a mask to `out`, shape (frames, 3), float64.

    `flat` and `frame_step` come from `rows_in_memory`. Over a tile, sums of whole numbers of up to
    16 bits are exact.
    """
    s = stretches
    if flat.dtype.kind in "iu" and flat.dtype.itemsize <= 2:
        signed = flat.dtype.kind == "i"
        _add_small(flat, frame_step, s.y, s.x, s.place, s.length, signed, out)
    else:
        _add_any(flat, frame_step, s.y, s.x, s.place, s.length, out)


@summing_kernel
def _add_small(
    flat: Any, frame_step: int, y: Any, x: Any, place: Any, length: Any, signed: bool, out: Any
) -> None:
    """Add the moments of integers of up to 16 bits.

    Sums over a stretch are modulo 2**32: twice as many values fit a vector as with 64 bits, and
    unsigned arithmetic holds negative values as well. Read as signed where they are, none has
    wrapped.
    """
    one = np.uint32(1)
    for f in range(out.shape[0]):
        total, moment_y, moment_x = np.int64(0), np.int64(0), np.int64(0)
        for k in range(place.size):
            start = f * frame_step + place[k]
            stretch = flat[start : start + length[k]]
            # a position of 32 bits, or LLVM makes one of 64 in each step: a third slower
            position, total_32, moment_32 = np.uint32(0), np.uint32(0), np.uint32(0)
            for j in range(stretch.size):
                value = np.uint32(stretch[j])
                total_32 = np.uint32(total_32 + value)
                moment_32 = np.uint32(moment_32 + np.uint32(value * position))
                position = np.uint32(position + one)
            s, m = np.int64(total_32), np.int64(moment_32)
            if signed:
                s, m = np.int64(np.int32(total_32)), np.int64(np.int32(moment_32))
            total += s
            moment_y += s * y[k]
            moment_x += s * x[k] + m
        out[f, 0] += total
        out[f, 1] += moment_y
        out[f, 2] += moment_x


@summing_kernel
def _add_any(flat: Any, frame_step: int, y: Any, x: Any, place: Any, length: Any, out: Any) -> None:
    """Add the moments of floats and of integers of 32 bits and more, in float64."""
    for f in range(out.shape[0]):
        total, moment_y, moment_x = 0.0, 0.0, 0.0
        for k in range(place.size):
            start = f * frame_step + place[k]
            stretch = flat[start : start + length[k]]
            s, m = 0.0, 0.0
            for j in range(stretch.size):
                value = np.float64(stretch[j])
                s += value
                m += value * j
            total += s
            moment_y += s * y[k]
            moment_x += s * x[k] + m
        out[f, 0] += total
        out[f, 1] += moment_y
        out[f, 2] += moment_x
