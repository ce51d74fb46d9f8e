"""Sums and squared deviations of frames in a single pass, with a CUDA kernel.

Functions of CuPy would write all deviations to memory as float64 and read them again, which takes
many times as long as reading the data.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from udfdask.backends.table import namespace_of
from udfdask.kernels.cuda.sums import blocks_of
from udfdask.kernels.moment_arrays import LARGEST_ORIGIN, Moments


def squared(values: Any) -> Any:
    """Return squared absolute values, real."""
    return values.real**2 + values.imag**2 if values.dtype.kind == "c" else values * values


THREADS = 1 << 18
"""Approximate number of threads; each processes one pixel of one group of frames."""

LEAST = 16
"""Smallest number of frames in a group."""

BODY = """
const long long pixel = i % pixels;
const long long first = i / pixels * depth;
const long long stop = first + depth < frames ? first + depth : frames;
const double value = (double)tile[first * pixels + pixel];
origin = fabs(value) <= 1e300 ? value : 0;
double sum = 0, squares = 0;
for (long long n = first; n < stop; ++n) {
    const double apart = (double)tile[n * pixels + pixel] - origin;
    sum += apart;
    squares += apart * apart;
}
const double count = (double)(stop - first);
excess = sum;
varsum = squares - sum * sum / count;
"""
"""The work of one thread: one pixel of one group. Neighboring threads read neighboring pixels.

Deviations are taken from the first frame of the group, so that squares do not cancel. The limit is
`LARGEST_ORIGIN`.
"""


def has_kernels(xp: Any, tile: Any) -> bool:
    """Return whether an array module can compile the kernel, and the kernel supports the tile."""
    return (
        hasattr(xp, "ElementwiseKernel")
        and tile.dtype.char in "?bhilqBHILQfd"
        and bool(tile.flags.c_contiguous)
    )


def group_depth(frames: int, pixels: int) -> int:
    """Return the number of frames per thread."""
    groups = max(1, min(frames // LEAST, THREADS // max(1, pixels)))
    return -(-frames // groups)


def group_moments(xp: Any, tile: Any, depth: int) -> tuple[Moments, Any]:
    """Return the moments of groups of `depth` frames, and the number of frames in each group.

    `tile` has the shape (n, *part) and is contiguous. The moments have the shape (groups, *part),
    the counts (groups, 1, ...).
    """
    frames, part = int(tile.shape[0]), tile.shape[1:]
    groups = -(-frames // depth)
    moments = Moments(*(xp.empty((groups, *part), dtype=np.float64) for _ in range(3)))
    pixels = int(tile.size // frames)
    _kernel(xp)(tile, frames, pixels, depth, *moments)
    counts = np.full((groups, *(1 for _ in part)), float(depth))
    counts[-1] = frames - (groups - 1) * depth
    return moments, xp.asarray(counts)


def joined(groups: Moments, counts: Any) -> Moments:
    """Return the moments of all groups together, from the return values of `group_moments`."""
    origin = groups.origin[0]
    shift = groups.origin - origin
    excess = (groups.excess + counts * shift).sum(axis=0)
    deviation = shift + groups.excess / counts - excess / counts.sum()
    return Moments(origin, excess, (groups.varsum + counts * deviation * deviation).sum(axis=0))


@lru_cache(maxsize=2)
def _kernel(xp: Any) -> Any:
    """Return the kernel; CuPy compiles it for each dtype on its first call."""
    return xp.ElementwiseKernel(
        "raw T tile, int64 frames, int64 pixels, int64 depth",
        "float64 origin, float64 excess, float64 varsum",
        BODY,
        "udfdask_group_moments",
    )


def add_moments(tile: Any, before: int, moments: Moments) -> None:
    """Merge the frames of a tile, shape (n, *part), into the moments of `before` other frames."""
    if not tile.size:
        return
    xp, count = namespace_of(tile), int(tile.shape[0])
    if has_kernels(xp, tile):
        groups = group_moments(xp, tile, group_depth(count, tile.size // count))
        merge_moments(before, moments, count, joined(*groups))
        return
    dtype = moments.excess.dtype
    for (block,) in blocks_of(dtype.itemsize, tile):
        count = int(block.shape[0])
        first = block[0].astype(dtype)
        origin = xp.where(xp.abs(first) <= LARGEST_ORIGIN, first, dtype.type(0))
        deviations = block.astype(dtype) - origin
        excess = deviations.sum(axis=0)
        deviations -= excess / count
        more = Moments(origin, excess, squared(deviations).sum(axis=0))
        merge_moments(before, moments, count, more)
        before += count


def merge_moments(before: int, moments: Moments, count: int, more: Moments) -> None:
    """Merge the moments of `count` frames into the moments of `before` other frames."""
    if not count:
        return
    if not before:
        for target, source in zip(moments, more, strict=True):
            target[...] = source
        return
    origin, excess, varsum = moments
    shift = more.origin - origin
    difference = shift + more.excess / count - excess / before  # of the two means
    varsum += more.varsum + squared(difference) * (before * count / (before + count))
    excess += more.excess + count * shift


def add_spread(tile: Any, ys: Any, xs: Any, before: int, mean: Any, spread: Any) -> None:
    """Merge some pixels of a tile, shape (frames, y, x), into the moments of each frame.

    `mean` and `spread`, the sum of |value - mean|**2, have the shape (frames,) and describe the
    `before` pixels of each frame so far. They are merged by the formula of Chan, Golub and LeVeque.
    """
    n = int(ys.size)
    share = n / (before + n)
    for block, means, spreads in blocks_of(mean.itemsize, tile, mean, spread):
        values = block[:, ys, xs].astype(mean.dtype)
        new_means = values.mean(axis=1)
        squares = squared(values - new_means[:, None]).sum(axis=1)
        shift = new_means - means
        means[:] += shift * share
        spreads[:] += squares + squared(shift) * (before * share)
