"""Sums of squared deviations over the frames of a tile, pixel by pixel.

As in `column_sums`, kernels work on blocks of pixels, and on eight frames at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.kernels.cpu.column_sums import eight_rows
from udfdask.kernels.cpu.compile import contracting_kernel, inner_kernel, kernel
from udfdask.kernels.cpu.rows import swapped
from udfdask.kernels.moment_arrays import LARGEST_ORIGIN
from udfdask.types import AnyArray


@contracting_kernel
def deviate_columns(
    flat: AnyArray,
    count: int,
    step: int,
    width: int,
    swap: Any,
    block: int,
    before: int,
    origin: AnyArray,
    excess: AnyArray,
    varsum: AnyArray,
) -> None:
    """Merge the moments of all rows, `block` pixels at a time, into those of `before` other rows.

    Deviations are taken from the first row, so that no offset is squared. If the first row is far
    from all others, rounding errors grow, but at most by a factor of the number of rows.
    """
    first, sums, squares = np.empty(block), np.empty(block), np.empty(block)
    each = 1.0 / count
    for start in range(0, width, block):
        n = min(block, width - start)
        origins, added, squared = first[:n], sums[:n], squares[:n]
        start_at(origins, swap, flat[start : start + n])
        added[:] = 0
        squared[:] = 0
        eights = count - count % 8
        for i in range(0, eights, 8):
            rows = eight_rows(flat, i * step + start, step, n)
            _deviate_eight(added, squared, origins, swap, *rows)
        for i in range(eights, count):
            row = flat[i * step + start : i * step + start + n]
            _deviate_one(added, squared, origins, swap, row)
        for j in range(n):
            squared[j] -= added[j] * added[j] * each
        stop = start + n
        state = origin[start:stop], excess[start:stop], varsum[start:stop]
        merge_columns(before, *state, count, origins, added, squared)


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
    """Merge the moments of `count` rows into those of `before` other rows.

    The sum of n rows is ``n * origin + excess``. The formula of Chan, Golub and LeVeque (1979)
    needs the difference of two means. The difference of similar origins is exact, which keeps its
    precision. `more_origin` is None if the origin is 0.
    """
    if before == 0:
        for j in range(len(origin)):
            origin[j] = _origin_at(more_origin, j)
            excess[j] = np.float64(more_excess[j])
            varsum[j] = more_varsum[j]
        return
    n, m = np.float64(before), np.float64(count)
    # for a constant pixel, `more * n` and `excess * m` are equal: its variance is exactly 0
    scale, weight = 1.0 / (n * m), n * m / (n + m)
    for j in range(len(origin)):
        more, shift = np.float64(more_excess[j]), _origin_at(more_origin, j) - origin[j]
        difference = shift + (more * n - excess[j] * m) * scale
        varsum[j] += more_varsum[j] + difference * difference * weight
        excess[j] += more + shift * m


@inner_kernel
def _origin_at(origin: Any, j: int) -> Any:
    """Return the origin of a pixel, 0 if there are no origins."""
    if origin is None:
        return 0.0
    return origin[j]


@inner_kernel
def start_at(origin: AnyArray, swap: Any, a: AnyArray) -> None:
    """Write the values of a row, and 0 for NaN and for values so large that sums overflow."""
    for j in range(len(origin)):
        x = np.float64(swapped(a[j], swap))
        origin[j] = x if abs(x) <= LARGEST_ORIGIN else 0.0


@inner_kernel
def _deviate_one(
    sums: AnyArray, squares: AnyArray, origin: AnyArray, swap: Any, a: AnyArray
) -> None:
    """Add the deviations of a row from the origin, and their squares."""
    for j in range(len(origin)):
        x = np.float64(swapped(a[j], swap)) - origin[j]
        sums[j] += x
        squares[j] += x * x


@inner_kernel
def _deviate_eight(
    sums: AnyArray,
    squares: AnyArray,
    origin: AnyArray,
    swap: Any,
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
        p = np.float64(swapped(a[j], swap)) - o
        q = np.float64(swapped(b[j], swap)) - o
        r = np.float64(swapped(c[j], swap)) - o
        s = np.float64(swapped(d[j], swap)) - o
        t = np.float64(swapped(e[j], swap)) - o
        u = np.float64(swapped(f[j], swap)) - o
        v = np.float64(swapped(g[j], swap)) - o
        w = np.float64(swapped(h[j], swap)) - o
        sums[j] += ((p + q) + (r + s)) + ((t + u) + (v + w))
        # chains of fused operations leave the units for additions to the differences and sums
        squares[j] = (p * p + (q * q + (r * r + (s * s + squares[j])))) + (
            t * t + (u * u + (v * v + w * w))
        )
