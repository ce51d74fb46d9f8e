"""Sums over the frames in a window around each position."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from udfdask.base.types import AnyArray
from udfdask.kernels.numba_internals.compile import inner_kernel, kernel
from udfdask.kernels.numba_internals.rows import as_native, swapped


class NeighborFrames(NamedTuple):
    """Frames as flat, read-only memory: frame i is ``flat[starts[i] : starts[i] + width]``.

    Frames are counted in C order of the window, so that a neighbor has the same distance from each
    position. `swap` is that of `udfdask.kernels.numba_internals.rows.swapped`.
    """

    flat: AnyArray
    starts: AnyArray
    width: int
    swap: bool | None


def frames_of(frames: AnyArray, nav_dims: int) -> NeighborFrames:
    """Return a window of shape (*nav, *sig), not empty, as flat memory.

    Complex numbers become pairs of real numbers, bool becomes uint8. The window is only copied if
    the pixels of a frame are not contiguous, or if no kernel can read its dtype.
    """
    native, swap = as_native(frames)
    if native.dtype == np.bool_:
        native = native.view(np.uint8)
    elif native.dtype == np.float16 or native.dtype.char in "gG":
        native = native.astype(np.complex128 if native.dtype.kind == "c" else np.float64)
    size, steps = native.itemsize, native.strides[:nav_dims]
    in_place = native.flags.aligned and native[(0,) * nav_dims].flags.c_contiguous
    if not in_place or any(step < 0 or step % size for step in steps):
        native = np.ascontiguousarray(native)
    flat, starts, width = _flat(native, nav_dims, writeable=False)
    return NeighborFrames(flat, starts, width, swap)


def _flat(array: AnyArray, nav_dims: int, writeable: bool) -> tuple[AnyArray, AnyArray, int]:
    """Return contiguous frames as flat memory of real numbers, their starts, and their length."""
    size = array.itemsize
    starts: AnyArray = np.zeros((), np.int64)
    for n, step in zip(array.shape[:nav_dims], array.strides[:nav_dims], strict=True):
        starts = np.add.outer(starts, np.arange(n) * (step // size))
    starts = starts.reshape(-1)
    width = array.size // starts.size
    flat = as_strided(array, (int(starts[-1]) + width,), (size,), writeable=writeable)
    if flat.dtype.kind == "c":
        return flat.view(flat.real.dtype), 2 * starts, 2 * width
    return flat, starts, width


class Neighborhood(NamedTuple):
    """Where positions and their neighbors are among the frames of a window, in C order.

    `places` are the positions to compute, int64; `active` tells which of all frames are such
    positions and selected, `exists` which exist, both bool.
    """

    places: AnyArray
    active: AnyArray
    exists: AnyArray

    @classmethod
    def of(cls, core: Any, core_mask: AnyArray, neighbor_mask: AnyArray) -> Neighborhood:
        """Return the positions for `core`, `core_mask` and `neighbor_mask` of `UDF.meta`."""
        shape = neighbor_mask.shape
        active = np.zeros(shape, dtype=bool)
        active[core] = core_mask
        places = np.arange(active.size).reshape(shape)[core].reshape(-1)
        return cls(places, active.reshape(-1), neighbor_mask.reshape(-1))


def distances(offsets: AnyArray, shape: tuple[int, ...]) -> AnyArray:
    """Return how many frames after a position its neighbors come, int64, shape (neighbors,).

    `offsets` has the shape (neighbors, nav dims); `shape` is the number of frames of the window
    along each axis.
    """
    steps = np.cumprod((1, *shape[:0:-1]))[::-1][: len(shape)]
    return (np.asarray(offsets) @ steps).astype(np.int64)


CACHE = 512 << 10
"""Bytes of neighboring frames that stay in the second-level cache."""

BLOCKS = (512, 4096)
"""Smallest and largest number of pixels at a time: their sums stay in the first-level cache."""


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
    flat, starts, _ = _flat(out, nav_dims, writeable=True)
    shares = np.empty(len(steps), flat.dtype)
    results = flat, starts, np.empty(len(steps), np.int64), shares
    _sum_neighbors(tuple(frames), tuple(where), steps, weights, normalize, block, results)


# To convert each frame once, to a buffer in the cache, took 1.3 times as long for 9 neighbors, and
# as long for 25.
@kernel
def _sum_neighbors(
    frames: Any, where: Any, steps: Any, weights: Any, normalize: bool, block: int, results: Any
) -> None:
    """Do the work block by block of pixels; `taps` and `shares` are memory for the neighbors."""
    flat, starts, width, swap = frames
    places, active, exists = where
    out, targets, taps, shares = results
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
                four = flat[a : a + n], flat[b : b + n], flat[c : c + n], flat[d : d + n]
                _add_four(target, swap, four, shares[k : k + 4])
            for k in range(fours, count):
                a = taps[k]
                _add_one(target, swap, flat[a : a + n], shares[k])
            if normalize:
                whole = cast(total)
                for j in range(n):  # 0 / 0 is NaN
                    target[j] /= whole


@inner_kernel
def _add_one(out: AnyArray, swap: Any, a: AnyArray, share: float) -> None:
    cast = out.dtype.type
    for j in range(len(out)):
        out[j] += share * cast(swapped(a[j], swap))


# with more than four, the compiler does not vectorize: it cannot exclude that `out` overlaps one
@inner_kernel
def _add_four(out: AnyArray, swap: Any, four: Any, shares: AnyArray) -> None:
    """Add four frames: a sum is then loaded and stored once for four values."""
    cast = out.dtype.type
    a, b, c, d = four
    p, q, r, s = shares[0], shares[1], shares[2], shares[3]
    for j in range(len(out)):
        two = p * cast(swapped(a[j], swap)) + q * cast(swapped(b[j], swap))
        out[j] += (two + r * cast(swapped(c[j], swap))) + s * cast(swapped(d[j], swap))
