"""Weighted sums of the frames around each scan position."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.kernels.cpu.compile import inner_kernel, kernel
from udfdask.kernels.cpu.neighbor_frames import NeighborFrames, Neighborhood, results_of
from udfdask.kernels.cpu.rows import swapped
from udfdask.types import AnyArray

CACHE = 512 << 10
"""Bytes of neighboring frames that stay in the second-level cache, so that each frame is read from
memory about once."""

BLOCKS = (512, 4096)
"""Smallest and largest number of pixels that are computed at a time. Their sums stay in the
first-level cache."""


def sum_neighbors(
    frames: NeighborFrames,
    where: Neighborhood,
    steps: AnyArray,
    weights: AnyArray,
    normalize: bool,
    out: AnyArray,
    nav_dims: int,
) -> None:
    """Write the weighted sum, or mean, of the neighbors of each position to `out`.

    Neighbor k is `steps[k]` frames after the position, and has the weight `weights[k]`, float64. A
    neighbor that does not exist adds nothing, and with `normalize` its weight does not count. `out`
    has the shape (*nav, *sig) of the positions, and contiguous frames; its dtype, float32, float64
    or complex, is that of the sums. Frames of positions that are not active do not change.
    """
    near = int(steps.max() - steps.min()) + 1
    smallest, largest = BLOCKS
    block = min(max(CACHE // (near * frames.flat.itemsize), smallest), largest)
    taps = np.empty(len(steps), np.int64)
    flat, starts = results_of(out, nav_dims)
    shares = np.empty(len(steps), flat.dtype)
    _sum_neighbors(*frames, *where, steps, weights, normalize, block, taps, shares, flat, starts)


# To convert each frame once, to a buffer in the cache, took 1.3 times as long for 9 neighbors, and
# as long for 25.
@kernel
def _sum_neighbors(
    flat: AnyArray,
    starts: AnyArray,
    width: int,
    swap: Any,
    places: AnyArray,
    active: AnyArray,
    exists: AnyArray,
    steps: AnyArray,
    weights: AnyArray,
    normalize: bool,
    block: int,
    taps: AnyArray,
    shares: AnyArray,
    out: AnyArray,
    targets: AnyArray,
) -> None:
    """Do the work block by block of pixels; `taps` and `shares` are memory for the neighbors."""
    cast = out.dtype.type
    for first in range(0, width, block):
        n = min(block, width - first)
        for i in range(len(places)):
            place = places[i]
            if not active[place]:
                continue
            count, total = 0, 0.0
            for k in range(len(steps)):
                frame = place + steps[k]
                if exists[frame]:
                    taps[count] = starts[frame] + first
                    shares[count] = weights[k]
                    total += weights[k]
                    count += 1
            target = out[targets[i] + first : targets[i] + first + n]
            for j in range(n):
                target[j] = 0
            # the same groups for the same neighbors: the last bits do not depend on chunks
            fours = count - count % 4
            for k in range(0, fours, 4):
                a, b, c, d = taps[k], taps[k + 1], taps[k + 2], taps[k + 3]
                _add_four(
                    target,
                    swap,
                    flat[a : a + n],
                    flat[b : b + n],
                    flat[c : c + n],
                    flat[d : d + n],
                    shares[k : k + 4],
                )
            for k in range(fours, count):
                a = taps[k]
                _add_one(target, swap, flat[a : a + n], shares[k])
            if normalize:
                whole = cast(total)
                for j in range(n):  # 0 / 0 is NaN
                    target[j] /= whole


@inner_kernel
def _add_one(out: AnyArray, swap: Any, a: AnyArray, share: float) -> None:
    """Add a frame."""
    cast = out.dtype.type
    for j in range(len(out)):
        out[j] += share * cast(swapped(a[j], swap))


# with more than four, the compiler does not vectorize: it cannot exclude that `out` overlaps one
@inner_kernel
def _add_four(
    out: AnyArray, swap: Any, a: AnyArray, b: AnyArray, c: AnyArray, d: AnyArray, shares: AnyArray
) -> None:
    """Add four frames: a sum is then loaded and stored once for four values."""
    cast = out.dtype.type
    p, q, r, s = shares[0], shares[1], shares[2], shares[3]
    for j in range(len(out)):
        two = p * cast(swapped(a[j], swap)) + q * cast(swapped(b[j], swap))
        out[j] += (two + r * cast(swapped(c[j], swap))) + s * cast(swapped(d[j], swap))
