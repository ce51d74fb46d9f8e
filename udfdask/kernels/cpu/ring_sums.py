"""Weighted sums over pixels that all frames have in common: those of rings and of sparse masks.

Frames are transposed block by block, so that a pixel of many frames is one vector: gathering the
pixels of each frame took 2 to 10 times as long. For the few frames that remain, they are gathered.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from udfdask.base.aligned import CACHE_LINE
from udfdask.base.types import AnyArray
from udfdask.kernels.numba_internals.compile import contracting_kernel, inner_kernel
from udfdask.kernels.numba_internals.reading import plus
from udfdask.kernels.numba_internals.rows import as_native, rows_in_memory, swapped
from udfdask.kernels.numba_internals.vector_products import (
    LANES,
    SIDE,
    add_lane_products,
    transpose_line,
)

BLOCK = 128
"""Cache lines of pixels in a block: those of `LANES` frames fit the second-level cache."""

LONGEST = 512
"""Largest number of pixels in a run, which limits rounding errors in single precision."""


class FrameMemory(NamedTuple):
    """Frames of a tile: frame i starts at ``flat[i * frame_step]``, read-only, in native order.

    Rows of pixels are `row_step` elements apart. A frame has `extent` elements from its first to
    its last pixel, at least a cache line. `shift` counts the elements from the start of a cache
    line to the first pixel of each frame; it is 0 if that varies.
    """

    flat: AnyArray
    frame_step: int
    row_step: int
    extent: int
    swap: bool | None
    shift: int

    @property
    def layout(self) -> tuple[int, ...]:
        """All numbers that `cut_runs` depends on: copied frames are longer than others."""
        return self.row_step, self.extent, self.shift, self.flat.itemsize


def frames_in_memory(tile: AnyArray) -> FrameMemory:
    """Return a tile of shape (n, height, width), not empty; frames of few bytes are copied."""
    native, swap = as_native(tile)
    flat, frame_step, row_step = rows_in_memory(native)
    _, height, width = tile.shape
    extent = (height - 1) * row_step + width
    if extent * flat.itemsize < CACHE_LINE:
        return frames_in_memory(np.pad(tile, [(0, 0), (0, 0), (0, CACHE_LINE)]))
    shift = 0
    if frame_step * flat.itemsize % CACHE_LINE == 0:
        shift = flat.ctypes.data % CACHE_LINE // flat.itemsize
    return FrameMemory(flat, frame_step, row_step, extent, swap, shift)


class PixelRuns(NamedTuple):
    """Pixels of a frame block by block, and in each block run by run; indices are int64.

    `lines` are the first pixels of the cache lines that blocks read; `line_ends` and `run_ends`
    count the lines and runs up to the end of each block. Run i has the pixels from ``bounds[i]`` to
    ``bounds[i + 1]``: their places in the transposed block, `slots`, uint32, and their `weights`,
    shape (pixels, terms), in the dtype of the products, for its `columns`, shape (runs, terms).
    """

    lines: AnyArray
    line_ends: AnyArray
    run_ends: AnyArray
    bounds: AnyArray
    columns: AnyArray
    slots: AnyArray
    weights: AnyArray


def cut_runs(
    places: AnyArray, groups: AnyArray, columns: AnyArray, weights: AnyArray, frames: FrameMemory
) -> PixelRuns:
    """Return pixels as runs; they are the same for all tiles with the same `layout`.

    `places` are indices into the memory of a frame. A pixel of group g adds
    ``weights[pixel, t] * I`` to ``columns[g, t]`` of the sums, for each t. A pixel can be in
    several groups.
    """
    width = CACHE_LINE // frames.flat.itemsize
    # the address of a frame must not change the order of additions, and thus the last bits of sums:
    # blocks do not depend on it
    used, number = np.unique(places // width, return_inverse=True)
    block, blocks = number // BLOCK, np.arange(-(-len(used) // BLOCK))
    # Parts of lines would be loaded repeatedly: frames whose size is a power of two displace each
    # other. Lines that began between those of the processor took 1.1 to 1.4 times as long.
    line = (places + frames.shift) // width * width - frames.shift
    # the first line starts and the last one ends with the frame: memory may end there
    line = np.clip(line, 0, frames.extent - width)
    loaded, number = np.unique(block * frames.extent + line, return_inverse=True)
    line_ends = np.searchsorted(loaded // frames.extent, blocks, side="right")
    slot = (number - np.append(0, line_ends)[block]) * width + places - line
    key = block * len(columns) + groups
    order = np.argsort(key, kind="stable")
    firsts = np.flatnonzero(np.diff(key[order], prepend=-1))
    firsts = np.union1d(firsts, np.arange(0, len(order), LONGEST))
    head = order[firsts]
    return PixelRuns(
        loaded % frames.extent,
        line_ends,
        np.searchsorted(block[head], blocks, side="right"),
        np.append(firsts, len(order)),
        columns[groups[head]],
        slot[order].astype(np.uint32),
        weights[order],
    )


def add_runs(frames: FrameMemory, runs: PixelRuns, out: AnyArray) -> None:
    """Add the weighted sums of each frame to `out`, shape (frames, columns), float64.

    The column after the last one of `out` takes sums that are ignored.
    """
    most = np.diff(runs.line_ends, prepend=0).max(initial=0)
    slots = most * CACHE_LINE // frames.flat.itemsize
    transposed = np.zeros((LANES // SIDE, slots, SIDE), frames.flat.dtype)
    sums = np.empty((out.shape[1] + 1, LANES))
    terms = (None,) * runs.weights.shape[1]
    source = frames.flat, frames.frame_step, frames.swap
    _add_runs(source, tuple(runs), terms, transposed, sums, out)


@contracting_kernel
def _add_runs(frames: Any, runs: Any, terms: Any, transposed: Any, sums: Any, out: Any) -> None:
    """Add the sums of `LANES` frames at a time; `transposed` and `sums` are buffers."""
    flat, step, swap = frames
    lines, line_ends, run_ends, bounds, columns, slots, weights = runs
    count = len(out)
    width = CACHE_LINE // flat.itemsize
    for first in range(0, count, LANES):
        sums[:] = 0
        line = run = 0
        for block in range(len(run_ends)):
            inside = lines[line : line_ends[block]]
            line = line_ends[block]
            # one part after the other: with twice as many frames at a time, lines of frames whose
            # size is a power of two displaced each other, and this took 1.2 to 2 times as long
            for part in range(LANES // SIDE):
                frame = first + part * SIDE
                if frame < count:
                    for k in range(len(inside)):
                        square = transposed[part, k * width : (k + 1) * width]
                        transpose_line(flat, inside[k], step, frame, count - 1, swap, square)
            while run < run_ends[block]:
                first_pixel, stop = bounds[run], bounds[run + 1]
                add_lane_products(
                    transposed,
                    transposed.shape[1],
                    slots,
                    weights,
                    first_pixel,
                    stop,
                    columns[run],
                    terms,
                    sums,
                )
                run += 1
        for f in range(min(LANES, count - first)):
            for b in range(out.shape[1]):
                out[first + f, b] += sums[b, f]


FEWEST = 6
"""Smallest number of frames that are transposed."""


class RingPlaces(NamedTuple):
    """Pixels of rings or masks: ring b has those from ``bounds[b]`` to ``bounds[b + 1]``, int64.

    `places` are indices into the memory of a frame, uint32: kernels need not check for negative
    ones. The `weights` have the dtype of the sums, float64 for rings.
    """

    bounds: AnyArray
    places: AnyArray
    weights: AnyArray


def ring_runs(rings: RingPlaces, frames: FrameMemory) -> PixelRuns:
    """Return the pixels of rings for `add_runs`.

    A pixel has weights in two rings: soft edges are in both. If it is in one ring only, the second
    is the column after the last ring, whose sums are ignored. With a run for each ring, in place of
    each pair, rings of one pixel took 1.3 times as long.
    """
    places, pairs, weights = _in_pairs(rings)
    columns, groups = np.unique(pairs, axis=0, return_inverse=True)
    return cut_runs(places, groups.reshape(-1), columns, weights, frames)


def mask_runs(masks: RingPlaces, frames: FrameMemory) -> PixelRuns:
    """Return the pixels of masks for `add_runs`; a pixel can be in many masks."""
    numbers = np.arange(len(masks.bounds) - 1)
    groups = np.repeat(numbers, np.diff(masks.bounds))
    places, weights = masks.places.astype(np.int64), masks.weights[:, np.newaxis]
    return cut_runs(places, groups, numbers[:, np.newaxis], weights, frames)


def _in_pairs(rings: RingPlaces) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return places, with two rings and two weights for each place; some are given repeatedly."""
    counts = np.diff(rings.bounds)
    order = np.argsort(rings.places, kind="stable")
    ring = np.repeat(np.arange(len(counts)), counts)[order]
    place, weight = rings.places[order].astype(np.int64), rings.weights[order]
    firsts = np.flatnonzero(np.diff(place, prepend=-1))
    sizes = np.diff(firsts, append=len(place))
    rank = np.arange(len(place)) - np.repeat(firsts, sizes)
    side, is_first = rank % 2, rank % 2 == 0
    number, count = np.cumsum(is_first) - 1, int(is_first.sum())
    pairs, weights = np.full((count, 2), len(counts)), np.zeros((count, 2))
    pairs[number, side], weights[number, side] = ring, weight
    return place[is_first], pairs, weights


def add_ring_sums(
    frames: FrameMemory, rings: RingPlaces, runs: PixelRuns | None, out: AnyArray
) -> None:
    """Add sum(w * I) of each ring to `out`, shape (frames, rings), in the dtype of the weights.

    Without `runs`, which have sums in float64, the pixels of all frames are gathered.
    """
    count, together = len(out), 0
    if runs is not None:
        together = count if count % LANES >= FEWEST else count - count % LANES
        if together:
            add_runs(frames, runs, out[:together])
    if together < count:
        source = frames.flat, frames.frame_step, frames.swap
        # sums in any order are vectorized: good for small integers, but larger values are then
        # loaded by instructions that gather, which took up to five times as long
        any_order = True if frames.flat.itemsize <= 2 else None
        _add_gathered(source, tuple(rings), any_order, together, out)


@contracting_kernel
def _add_gathered(frames: Any, rings: Any, any_order: Any, first: int, out: Any) -> None:
    """Add the sums of the frames from `first` on, four at a time: each weight is read once."""
    flat, step, swap = frames
    bounds, places, weights = rings
    kind = out.dtype.type
    in_fours = first + (len(out) - first) // 4 * 4
    for f in range(first, in_fours, 4):
        row_0, row_1 = flat[f * step :], flat[(f + 1) * step :]
        row_2, row_3 = flat[(f + 2) * step :], flat[(f + 3) * step :]
        for b in range(out.shape[1]):
            s_0 = s_1 = s_2 = s_3 = kind(0)
            place, weight = places[bounds[b] : bounds[b + 1]], weights[bounds[b] : bounds[b + 1]]
            for k in range(place.size):
                p, w = place[k], weight[k]
                s_0 = _plus(s_0, w * kind(swapped(row_0[p], swap)), any_order)
                s_1 = _plus(s_1, w * kind(swapped(row_1[p], swap)), any_order)
                s_2 = _plus(s_2, w * kind(swapped(row_2[p], swap)), any_order)
                s_3 = _plus(s_3, w * kind(swapped(row_3[p], swap)), any_order)
            out[f, b] += s_0
            out[f + 1, b] += s_1
            out[f + 2, b] += s_2
            out[f + 3, b] += s_3
    for f in range(in_fours, len(out)):
        row = flat[f * step :]
        for b in range(out.shape[1]):
            s = kind(0)
            for k in range(bounds[b], bounds[b + 1]):
                s += weights[k] * kind(swapped(row[places[k]], swap))
            out[f, b] += s


@inner_kernel
def _plus(total: Any, more: Any, any_order: Any) -> Any:
    """Return the sum; the compiler may only reorder sums if `any_order` is not None."""
    if any_order is None:
        return total + more
    return plus(total, more)
