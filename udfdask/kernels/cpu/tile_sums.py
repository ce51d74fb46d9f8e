"""Compute the sums that several UDFs need of a tile, while each value is read once.

These are the moments of each pixel over the frames, and of each frame the sum of its pixels and its
first moments. Kernels for each of them would read the tile from memory several times.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.kernels.cpu.column_sums import eight_rows
from udfdask.kernels.cpu.compile import inner_kernel, kernel
from udfdask.kernels.cpu.exact_squares import MOST_SQUARES
from udfdask.kernels.cpu.frame_reductions import merge_columns, start_at
from udfdask.kernels.cpu.intrinsics import plus, times
from udfdask.kernels.cpu.rows import as_native, rows_in_memory, swapped, wider
from udfdask.kernels.cpu.variance import TOGETHER
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
    most, squares_dtype = (MOST_SQUARES, SQUARES[narrow]) if exact else (TOGETHER, np.float64)
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
        *moments,
        of_frames,
    )
    return Moments(*(one.reshape(height, width) for one in moments)), of_frames


@kernel
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
    origin: Any,
    excess: Any,
    varsum: Any,
    of_frames: Any,
) -> None:
    """Add up strips of rows, `most` frames at a time.

    `origins`, `sums` and `squares` are temporary. `origins` is None if sums are exact without.
    """
    deviations = np.empty(len(sums))
    lanes = np.empty((2, 8), sums.dtype)
    strip = len(sums) // width
    for top in range(0, height, strip):
        bottom = min(top + strip, height)
        first, stop = top * width, bottom * width
        n_pixels = stop - first
        added, squared, deviation = sums[:n_pixels], squares[:n_pixels], deviations[:n_pixels]
        state = origin[first:stop], excess[first:stop], varsum[first:stop]
        for start in range(0, count, most):
            n = min(most, count - start)
            added[:] = 0
            squared[:] = 0
            _set_origins(origins, flat, start * frame_step, row_step, top, bottom, width, swap)
            for f in range(start, start + n, 8):
                for y in range(top, bottom):
                    for x in range(0, width, SEGMENT):
                        w = min(SEGMENT, width - x)
                        inside = (y - top) * width + x
                        some, their = added[inside : inside + w], squared[inside : inside + w]
                        near = _part(origins, inside, w)
                        place = f * frame_step + y * row_step + x
                        if f + 8 <= start + n:
                            rows = eight_rows(flat, place, frame_step, w)
                            _add_eight(some, their, near, swap, lanes, *rows)
                        else:
                            for k in range(start + n - f):
                                row = flat[place + k * frame_step : place + k * frame_step + w]
                                _add_one(some, their, near, swap, lanes[:, k], row)
                        for k in range(min(8, start + n - f)):
                            _note(of_frames[f + k], y, x, lanes[0, k], lanes[1, k])
            for j in range(n_pixels):
                deviation[j] = _deviation(added[j], squared[j], n)
            merge_columns(start, *state, n, _part(origins, 0, n_pixels), added, deviation)


@inner_kernel
def _part(array: Any, start: int, n: int) -> Any:
    """Return `n` values of an array; None if it is None."""
    if array is None:
        return None
    return array[start : start + n]


@inner_kernel
def _set_origins(
    origins: Any, flat: Any, place: int, row_step: int, top: int, bottom: int, width: int, swap: Any
) -> None:
    """Write the values of a frame, and 0 for NaN and for values so large that sums overflow."""
    if origins is not None:
        for y in range(top, bottom):
            row = flat[place + y * row_step : place + y * row_step + width]
            start_at(origins[(y - top) * width : (y - top + 1) * width], swap, row)


@inner_kernel
def _note(sums: Any, y: int, x: int, total: Any, moment: Any) -> None:
    """Add the sum of a part of a row that starts at pixel (y, x), and its first moments."""
    value = np.float64(total)
    sums[0] += value
    sums[1] += value * y
    sums[2] += np.float64(moment) + value * x


@inner_kernel
def _deviation(added: Any, squared: Any, n: int) -> Any:
    """Return the sum of squared deviations from the mean of `n` values, from their sums."""
    if isinstance(added, float):
        return squared - added * added / n
    s = np.int64(added)
    # n * sum(x**2) and sum(x)**2 are below 2**62: every step but the last is exact
    return np.float64(np.int64(squared) * n - s * s) / n


@inner_kernel
def _beyond(value: Any, origins: Any, j: int) -> Any:
    """Return the difference of a value and the origin of its pixel."""
    if origins is None:
        return value
    return value - origins[j]


@inner_kernel
def _add_one(sums: Any, squares: Any, origins: Any, swap: Any, lane: Any, a: Any) -> None:
    """Add a row; write its sum and its first moment along x to `lane`."""
    wide, wider = sums.dtype.type, squares.dtype.type
    total = moment = wide(0)
    for j in range(len(sums)):
        value = wide(swapped(a[j], swap))
        p = _beyond(value, origins, j)
        sums[j] = plus(sums[j], p)
        squares[j] += wider(times(p, p))
        total = plus(total, value)
        moment = plus(moment, times(value, wide(j)))
    lane[0], lane[1] = total, moment


@inner_kernel
def _add_eight(
    sums: Any,
    squares: Any,
    origins: Any,
    swap: Any,
    lanes: Any,
    a: Any,
    b: Any,
    c: Any,
    d: Any,
    e: Any,
    f: Any,
    g: Any,
    h: Any,
) -> None:
    """Add a row of each of eight frames; write their sums and first moments along x to `lanes`."""
    wide, wider = sums.dtype.type, squares.dtype.type
    ta = tb = tc = td = te = tf = tg = th = wide(0)
    ma = mb = mc = md = me = mf = mg = mh = wide(0)
    x, one = wide(0), wide(1)
    for j in range(len(sums)):
        va = wide(swapped(a[j], swap))
        vb = wide(swapped(b[j], swap))
        vc = wide(swapped(c[j], swap))
        vd = wide(swapped(d[j], swap))
        ve = wide(swapped(e[j], swap))
        vf = wide(swapped(f[j], swap))
        vg = wide(swapped(g[j], swap))
        vh = wide(swapped(h[j], swap))
        ta, ma = plus(ta, va), plus(ma, times(va, x))
        tb, mb = plus(tb, vb), plus(mb, times(vb, x))
        tc, mc = plus(tc, vc), plus(mc, times(vc, x))
        td, md = plus(td, vd), plus(md, times(vd, x))
        te, me = plus(te, ve), plus(me, times(ve, x))
        tf, mf = plus(tf, vf), plus(mf, times(vf, x))
        tg, mg = plus(tg, vg), plus(mg, times(vg, x))
        th, mh = plus(th, vh), plus(mh, times(vh, x))
        va, vb = _beyond(va, origins, j), _beyond(vb, origins, j)
        vc, vd = _beyond(vc, origins, j), _beyond(vd, origins, j)
        ve, vf = _beyond(ve, origins, j), _beyond(vf, origins, j)
        vg, vh = _beyond(vg, origins, j), _beyond(vh, origins, j)
        four = plus(plus(va, vb), plus(vc, vd))
        sums[j] = plus(sums[j], plus(four, plus(plus(ve, vf), plus(vg, vh))))
        x = plus(x, one)
        # each square fits the dtype of the sums, and 64-bit products would be slow
        squares[j] += (
            (wider(times(va, va)) + wider(times(vb, vb)))
            + (wider(times(vc, vc)) + wider(times(vd, vd)))
        ) + (
            (wider(times(ve, ve)) + wider(times(vf, vf)))
            + (wider(times(vg, vg)) + wider(times(vh, vh)))
        )
    lanes[0, 0], lanes[1, 0] = ta, ma
    lanes[0, 1], lanes[1, 1] = tb, mb
    lanes[0, 2], lanes[1, 2] = tc, mc
    lanes[0, 3], lanes[1, 3] = td, md
    lanes[0, 4], lanes[1, 4] = te, me
    lanes[0, 5], lanes[1, 5] = tf, mf
    lanes[0, 6], lanes[1, 6] = tg, mg
    lanes[0, 7], lanes[1, 7] = th, mh
