"""Weighted sums over the pixels of rings that all frames have in common.

Frames are transposed (`pixel_runs.py`); for a few remaining frames, pixels are gathered.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from udfdask.kernels.cpu.compile import contracting_kernel, inner_kernel
from udfdask.kernels.cpu.intrinsics import plus
from udfdask.kernels.cpu.lanes import LANES
from udfdask.kernels.cpu.pixel_runs import FrameMemory, PixelRuns, add_runs, cut_runs
from udfdask.kernels.cpu.rows import swapped
from udfdask.types import AnyArray

FEWEST = 6
"""Smallest number of frames that are transposed."""


class RingPlaces(NamedTuple):
    """The pixels of rings, as indices into the memory of a frame of a tile."""

    bounds: AnyArray
    """The pixels of ring b are those from ``bounds[b]`` to ``bounds[b + 1]``; int64."""
    places: AnyArray
    """Index of each pixel, in elements, uint32: kernels need not check for negative indices."""
    weights: AnyArray
    """Weight of each pixel, float64."""


def ring_runs(rings: RingPlaces, frames: FrameMemory) -> PixelRuns:
    """Return the pixels of rings for `add_runs`.

    A pixel has weights in two rings: soft edges are in both. If it is in one ring only, the second
    is the column after the last ring, whose sums are ignored.
    """
    places, pairs, weights = _in_pairs(rings)
    columns, groups = np.unique(pairs, axis=0, return_inverse=True)
    return cut_runs(places, groups.reshape(-1), columns, weights, frames)


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


def add_ring_sums(frames: FrameMemory, rings: RingPlaces, runs: PixelRuns, out: AnyArray) -> None:
    """Add sum(w * I) of each ring to `out`, shape (frames, rings), float64."""
    count = len(out)
    together = count if count % LANES >= FEWEST else count - count % LANES
    if together:
        add_runs(frames, runs, out[:together])
    if together < count:
        flat, step, swap = frames.flat, frames.frame_step, frames.swap
        # sums in any order are vectorized: good for small integers, but larger values are then
        # loaded by instructions that gather, which took up to five times as long
        in_order = None if flat.itemsize <= 2 else True
        _add_gathered(flat, step, swap, *rings, in_order, together, out)


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
    """Add the sums of the frames from `first` on, four at a time: each weight is read once."""
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
