"""Weighted sums over the pixels of rings that all frames have in common.

Frames are transposed block by block, so that a pixel of many frames is one vector: gathering the
pixels of each frame took 2 to 10 times as long. A few remaining frames are gathered.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from udfdask.kernels.cpu.compile import contracting_kernel, inner_kernel
from udfdask.kernels.cpu.intrinsics import CACHE_LINE, plus
from udfdask.kernels.cpu.lanes import LANES, lane_dtype, pixels_per_line, transpose_line
from udfdask.kernels.cpu.rows import swapped
from udfdask.types import AnyArray

BLOCK = 2048
"""Pixels in a block: transposed, they fit the second-level cache."""

TOGETHER = 4
"""Pixels that are added to the sums of a ring at once."""

FEWEST = 12
"""Smallest number of frames that are transposed."""


class RingPlaces(NamedTuple):
    """The pixels of rings, as indices into the memory of a frame of a tile."""

    bounds: AnyArray
    """The pixels of ring b are those from ``bounds[b]`` to ``bounds[b + 1]``; int64."""
    places: AnyArray
    """Index of each pixel, in elements, uint32: kernels need not check for negative indices."""
    weights: AnyArray
    """Weight of each pixel, float64."""


class RingBlocks(NamedTuple):
    """The same pixels, block by block, and in each block run by run.

    A run consists of the pixels that two rings share: soft edges are in both.
    """

    lines: AnyArray
    """Index of the first pixel of each line that has pixels of rings, int64."""
    ends: AnyArray
    """Number of runs in all blocks up to each block, int64."""
    runs: AnyArray
    """Two rings, first and last + 1 index into `slots`, for each run, int64, shape (runs, 4).

    The second ring is the number of rings if the pixels are in one ring only.
    """
    slots: AnyArray
    """Index of each pixel in the transposed block, uint32; `TOGETHER` at a time."""
    weights: AnyArray
    """Weights of each pixel in both rings, float64; 0 for padding, whose slot always holds 0."""


def in_blocks(rings: RingPlaces, extent: int, itemsize: int) -> RingBlocks | None:
    """Return the pixels of rings block by block, None if a frame is shorter than a line.

    `extent` is the number of elements from the first to the last pixel of a frame.
    """
    width = pixels_per_line(itemsize)
    if extent < width:
        return None
    most = BLOCK // width
    places, pairs, weights = _in_pairs(rings)
    line = places // width
    used = np.zeros(-(-extent // width), bool)
    used[line] = True
    number = (np.cumsum(used) - 1)[line]
    # the last line ends with the frame: after it, memory may end
    lines = np.minimum(np.flatnonzero(used) * width, extent - width)
    block, slot = number // most, number % most * width + places - lines[number]
    key = (block * len(rings.bounds) + pairs[:, 0]) * len(rings.bounds) + pairs[:, 1]
    order = np.argsort(key, kind="stable")
    firsts = np.flatnonzero(np.diff(key[order], prepend=-1))
    sizes = np.diff(firsts, append=len(order))
    stops = np.cumsum(sizes + -sizes % TOGETHER)
    starts = np.append(0, stops)[:-1]
    # pixel i of a run goes to index i of its padded run
    target = np.arange(len(order)) + np.repeat(starts - firsts, sizes)
    padded = np.append(0, stops)[-1]
    slots, both = np.full(padded, BLOCK, np.uint32), np.zeros((padded, 2))
    slots[target], both[target] = slot[order], weights[order]
    heads = order[firsts]
    ends = np.searchsorted(block[heads], np.arange(-(-len(lines) // most)), side="right")
    runs = np.stack([pairs[heads, 0], pairs[heads, 1], starts, stops], axis=1)
    return RingBlocks(lines, ends, runs, slots, both)


def _in_pairs(rings: RingPlaces) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return places, with two rings and two weights for each place; some are given repeatedly."""
    counts = np.diff(rings.bounds)
    order = np.argsort(rings.places, kind="stable")
    ring = np.repeat(np.arange(len(counts)), counts)[order]
    place, weight = rings.places[order].astype(np.int64), rings.weights[order]
    firsts = np.flatnonzero(np.diff(place, prepend=-1))
    sizes = np.diff(firsts, append=len(place))
    rank = np.arange(len(place)) - np.repeat(firsts, sizes)
    upper = np.flatnonzero(rank % 2 == 0)
    has_other = np.append(rank, 0)[upper + 1] % 2 == 1
    other = np.minimum(upper + 1, len(place) - 1)
    pairs = np.stack([ring[upper], np.where(has_other, ring[other], len(counts))], axis=1)
    weights = np.stack([weight[upper], np.where(has_other, weight[other], 0.0)], axis=1)
    return place[upper], pairs, weights


def add_ring_sums(
    flat: AnyArray,
    frame_step: int,
    swap: bool | None,
    rings: RingPlaces,
    blocks: RingBlocks | None,
    out: AnyArray,
) -> None:
    """Add sum(w * I) of each ring to `out`, shape (frames, rings), float64.

    `flat` and `frame_step` come from `rows_in_memory`, `swap` from `as_native`.
    """
    together = 0
    if blocks is not None:
        count = len(out)
        together = count if count % LANES >= FEWEST else count - count % LANES
    if together and blocks is not None:
        transposed = np.zeros((BLOCK + 1, LANES), lane_dtype(flat.dtype))
        sums = np.empty((out.shape[1] + 1, LANES))  # the last is that of no ring
        _add_blocks(flat, frame_step, swap, *blocks, transposed, sums, out[:together])
    if together < len(out):
        # sums in any order are vectorized: good for small integers, but larger values are then
        # loaded by instructions that gather, which took up to five times as long
        in_order = None if flat.itemsize <= 2 else True
        _add_gathered(flat, frame_step, swap, *rings, in_order, together, out)


@contracting_kernel
def _add_blocks(
    flat: Any,
    step: int,
    swap: Any,
    lines: Any,
    ends: Any,
    runs: Any,
    slots: Any,
    weights: Any,
    transposed: Any,
    sums: Any,
    out: Any,
) -> None:
    """Add the sums of `LANES` frames at a time; `transposed` and `sums` are buffers."""
    count = len(out)
    width = CACHE_LINE // flat.itemsize
    most = BLOCK // width
    for first in range(0, count, LANES):
        sums[:] = 0
        run = 0
        for block in range(len(ends)):
            start = block * most
            for k in range(min(most, len(lines) - start)):
                place = lines[start + k]
                transpose_line(flat, place, step, first, count, swap, transposed, k * width)
            while run < ends[block]:
                ring, other, a, b = runs[run]
                _add_run(transposed, slots[a:b], weights[a:b], sums[ring], sums[other])
                run += 1
        for f in range(min(LANES, count - first)):
            for b in range(out.shape[1]):
                out[first + f, b] += sums[b, f]


@inner_kernel
def _add_run(lanes: Any, slots: Any, weights: Any, sums: Any, others: Any) -> None:
    """Add the pixels of a run to two rings; each sum is loaded once for four pixels."""
    for j in range(0, len(slots), TOGETHER):
        p, q, r, s = lanes[slots[j]], lanes[slots[j + 1]], lanes[slots[j + 2]], lanes[slots[j + 3]]
        a, b, c, d = weights[j, 0], weights[j + 1, 0], weights[j + 2, 0], weights[j + 3, 0]
        e, f, g, h = weights[j, 1], weights[j + 1, 1], weights[j + 2, 1], weights[j + 3, 1]
        for k in range(LANES):
            t, u, v, w = np.float64(p[k]), np.float64(q[k]), np.float64(r[k]), np.float64(s[k])
            sums[k] += (a * t + b * u) + (c * v + d * w)
            others[k] += (e * t + f * u) + (g * v + h * w)


@contracting_kernel
def _add_gathered(
    flat: Any,
    step: int,
    swap: Any,
    bounds: Any,
    places: Any,
    weights: Any,
    in_order: Any,
    first: int,
    out: Any,
) -> None:
    """Add the sums of the frames from `first` on: four at a time, which share the weights."""
    in_fours = first + (len(out) - first) // 4 * 4
    for f in range(first, in_fours, 4):
        row_0, row_1 = flat[f * step :], flat[(f + 1) * step :]
        row_2, row_3 = flat[(f + 2) * step :], flat[(f + 3) * step :]
        for b in range(out.shape[1]):
            s_0, s_1, s_2, s_3 = 0.0, 0.0, 0.0, 0.0
            place, weight = places[bounds[b] : bounds[b + 1]], weights[bounds[b] : bounds[b + 1]]
            for k in range(place.size):
                p, w = place[k], weight[k]
                s_0 = _plus(s_0, w * np.float64(swapped(row_0[p], swap)), in_order)
                s_1 = _plus(s_1, w * np.float64(swapped(row_1[p], swap)), in_order)
                s_2 = _plus(s_2, w * np.float64(swapped(row_2[p], swap)), in_order)
                s_3 = _plus(s_3, w * np.float64(swapped(row_3[p], swap)), in_order)
            out[f, b] += s_0
            out[f + 1, b] += s_1
            out[f + 2, b] += s_2
            out[f + 3, b] += s_3
    for f in range(in_fours, len(out)):
        row = flat[f * step :]
        for b in range(out.shape[1]):
            s = 0.0
            for k in range(bounds[b], bounds[b + 1]):
                s = _plus(s, weights[k] * np.float64(swapped(row[places[k]], swap)), in_order)
            out[f, b] += s


@inner_kernel
def _plus(total: float, more: float, in_order: Any) -> Any:
    """Return the sum; if `in_order` is None, the compiler may reorder sums."""
    if in_order is None:
        return plus(total, more)
    return total + more
