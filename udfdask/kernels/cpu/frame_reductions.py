"""Sums of squared deviations over the frames of a tile, pixel by pixel.

As in `column_sums`, kernels work on blocks of pixels, and on eight frames at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.kernels.cpu.column_sums import eight_rows
from udfdask.kernels.cpu.compile import contracting_kernel, inner_kernel, kernel
from udfdask.kernels.cpu.rows import turned
from udfdask.kernels.moment_arrays import LARGEST_ORIGIN
from udfdask.types import AnyArray


@contracting_kernel
def deviate_columns(
    flat: AnyArray,
    count: int,
    step: int,
    width: int,
    turn: Any,
    block: int,
    before: int,
    origin: AnyArray,
    excess: AnyArray,
    varsum: AnyArray,
) -> None:
    """Merge moments of all rows, for so many pixels at a time, into those of `before` others.

    Deviations are taken from the first row, so that no offset is squared. Where the first is far
    from all others, rounding errors are multiplied, but at most by the number of rows.
    """
    first, sums, squares = np.empty(block), np.empty(block), np.empty(block)
    each = 1.0 / count
    for start in range(0, width, block):
        n = min(block, width - start)
        origins, some, squared = first[:n], sums[:n], squares[:n]
        _start_at(origins, turn, flat[start : start + n])
        some[:] = 0
        squared[:] = 0
        eights = count - count % 8
        for i in range(0, eights, 8):
            rows = eight_rows(flat, i * step + start, step, n)
            _deviate_eight(some, squared, origins, turn, *rows)
        for i in range(eights, count):
            row = flat[i * step + start : i * step + start + n]
            _deviate_one(some, squared, origins, turn, row)
        for j in range(n):
            squared[j] -= some[j] * some[j] * each
        stop = start + n
        state = origin[start:stop], excess[start:stop], varsum[start:stop]
        merge_columns(before, *state, count, origins, some, squared)


@kernel
def square_columns(
    flat: AnyArray,
    count: int,
    step: int,
    width: int,
    turn: Any,
    sums: AnyArray,
    squares: AnyArray,
    before: int,
    origin: AnyArray,
    excess: AnyArray,
    varsum: AnyArray,
) -> None:
    """Do as `deviate_columns` for integers of 8 or 16 bits, by sums of squares, which are exact.

    At most 32768 rows, whose sums the dtypes of `sums` and `squares` must hold.
    """
    block = len(sums)
    deviations = np.empty(block)
    each = 1.0 / count
    for start in range(0, width, block):
        n = min(block, width - start)
        some, squared, deviation = sums[:n], squares[:n], deviations[:n]
        some[:] = 0
        squared[:] = 0
        eights = count - count % 8
        for i in range(0, eights, 8):
            _square_eight(some, squared, turn, *eight_rows(flat, i * step + start, step, n))
        for i in range(eights, count):
            _square_one(some, squared, turn, flat[i * step + start : i * step + start + n])
        for j in range(n):
            s = np.int64(some[j])
            # n * sum(x**2) and sum(x)**2 are below 2**62, so that all but the last step is exact
            deviation[j] = np.float64(np.int64(squared[j]) * count - s * s) * each
        stop = start + n
        state = origin[start:stop], excess[start:stop], varsum[start:stop]
        merge_columns(before, *state, count, None, some, deviation)


@kernel
def merge_columns(
    before: int,
    origin: AnyArray,
    excess: AnyArray,
    varsum: AnyArray,
    count: int,
    more_origin: Any,
    more_excess: AnyArray,
    more_varsum: AnyArray,
) -> None:
    """Merge moments of `count` rows into those of `before` others.

    The sum of n rows is ``n * origin + excess``. The formula of Chan, Golub and LeVeque (1979)
    takes the difference of two means; that of two origins is exact where they are alike.
    `more_origin` is None for one that is 0.
    """
    if before == 0:
        for j in range(len(origin)):
            origin[j] = _origin_at(more_origin, j)
            excess[j] = np.float64(more_excess[j])
            varsum[j] = more_varsum[j]
        return
    n, m = np.float64(before), np.float64(count)
    # of pixels that never change both products are the same, and they deviate by nothing
    apart_by, weight = 1.0 / (n * m), n * m / (n + m)
    for j in range(len(origin)):
        more, moved = np.float64(more_excess[j]), _origin_at(more_origin, j) - origin[j]
        apart = moved + (more * n - excess[j] * m) * apart_by
        varsum[j] += more_varsum[j] + apart * apart * weight
        excess[j] += more + moved * m


@inner_kernel
def _origin_at(origin: Any, j: int) -> Any:
    """Return the origin of a pixel, 0 where there is none."""
    if origin is None:
        return 0.0
    return origin[j]


@inner_kernel
def _start_at(origin: AnyArray, turn: Any, a: AnyArray) -> None:
    """Write the values of a row, but 0 for what is no number, or so large that sums overflow."""
    for j in range(len(origin)):
        x = np.float64(turned(a[j], turn))
        origin[j] = x if abs(x) <= LARGEST_ORIGIN else 0.0


@inner_kernel
def _deviate_one(
    sums: AnyArray, squares: AnyArray, origin: AnyArray, turn: Any, a: AnyArray
) -> None:
    """Add the deviations of a row from the origin, and their squares."""
    for j in range(len(origin)):
        x = np.float64(turned(a[j], turn)) - origin[j]
        sums[j] += x
        squares[j] += x * x


@inner_kernel
def _deviate_eight(
    sums: AnyArray,
    squares: AnyArray,
    origin: AnyArray,
    turn: Any,
    a: AnyArray,
    b: AnyArray,
    c: AnyArray,
    d: AnyArray,
    e: AnyArray,
    f: AnyArray,
    g: AnyArray,
    h: AnyArray,
) -> None:
    """Add the deviations of eight rows from the origin, and their squares."""
    for j in range(len(origin)):
        o = origin[j]
        p = np.float64(turned(a[j], turn)) - o
        q = np.float64(turned(b[j], turn)) - o
        r = np.float64(turned(c[j], turn)) - o
        s = np.float64(turned(d[j], turn)) - o
        t = np.float64(turned(e[j], turn)) - o
        u = np.float64(turned(f[j], turn)) - o
        v = np.float64(turned(g[j], turn)) - o
        w = np.float64(turned(h[j], turn)) - o
        sums[j] += ((p + q) + (r + s)) + ((t + u) + (v + w))
        squares[j] += ((p * p + q * q) + (r * r + s * s)) + ((t * t + u * u) + (v * v + w * w))


@inner_kernel
def _square_one(sums: AnyArray, squares: AnyArray, turn: Any, a: AnyArray) -> None:
    """Add the values of a row, and their squares."""
    wide, wider = sums.dtype.type, squares.dtype.type
    for j in range(len(sums)):
        x = wide(turned(a[j], turn))
        sums[j] += x
        squares[j] += wider(wide(x * x))


@inner_kernel
def _square_eight(
    sums: AnyArray,
    squares: AnyArray,
    turn: Any,
    a: AnyArray,
    b: AnyArray,
    c: AnyArray,
    d: AnyArray,
    e: AnyArray,
    f: AnyArray,
    g: AnyArray,
    h: AnyArray,
) -> None:
    """Add the values of eight rows, and their squares."""
    wide, wider = sums.dtype.type, squares.dtype.type
    for j in range(len(sums)):
        p, q = wide(turned(a[j], turn)), wide(turned(b[j], turn))
        r, s = wide(turned(c[j], turn)), wide(turned(d[j], turn))
        t, u = wide(turned(e[j], turn)), wide(turned(f[j], turn))
        v, w = wide(turned(g[j], turn)), wide(turned(h[j], turn))
        sums[j] += ((p + q) + (r + s)) + ((t + u) + (v + w))
        # each square fits the dtype of the sums: no 64-bit products, which are slow
        squares[j] += (
            (wider(wide(p * p)) + wider(wide(q * q))) + (wider(wide(r * r)) + wider(wide(s * s)))
        ) + ((wider(wide(t * t)) + wider(wide(u * u))) + (wider(wide(v * v)) + wider(wide(w * w))))
