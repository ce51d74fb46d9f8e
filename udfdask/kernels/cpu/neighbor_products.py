"""Dot products of each frame with the frames around it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.kernels.cpu.neighbor_sums import NeighborFrames, Neighborhood
from udfdask.kernels.numba_internals.compile import inner_kernel, kernel, summing_kernel
from udfdask.kernels.numba_internals.rows import swapped

BLOCK = 2048
"""Pixels at a time, for all chunks: those of neighboring rows stay in the second-level cache."""

TOGETHER = 2
"""Neighbors that are multiplied together; four took as long."""


class Products(NamedTuple):
    """Sum and sum of squares of each frame, and dot products, (positions, neighbors); float64."""

    sums: AnyArray
    squares: AnyArray
    products: AnyArray


def cut_pixels(width: int, mask: AnyArray | None) -> tuple[AnyArray, AnyArray]:
    """Return the pixels of a frame in runs, and the runs in blocks of at most `BLOCK` pixels.

    The first array has the shape (runs, 2): first pixel and stop of each run. Block b has the runs
    from ``blocks[b]`` to ``blocks[b + 1]``. Without a mask, the runs are all pixels.
    """
    if mask is None:
        bounds = np.array([[0, width]])
    else:
        edges = np.diff(np.concatenate([[0], mask.reshape(-1).astype(np.int8), [0]]))
        bounds = np.stack([np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)], axis=1)
    cut = [(a, min(a + BLOCK, b)) for start, b in bounds for a in range(start, b, BLOCK)]
    runs = np.array(cut, np.int64).reshape((-1, 2))
    # a block spans at most BLOCK pixels, masked ones included: the cache holds it
    blocks, first = [0], None
    for k, (start, stop) in enumerate(runs):
        if first is None:
            first = start
        elif stop - first > BLOCK:
            blocks.append(k)
            first = start
    blocks.append(len(runs))
    return runs, np.array(blocks, np.int64)


def multiply_neighbors(
    frames: NeighborFrames, where: Neighborhood, steps: AnyArray, pixels: tuple[AnyArray, AnyArray]
) -> Products:
    """Return the dot products of the active positions with their neighbors, and their moments.

    Neighbor k is `steps[k]` frames after the position. A pair of frames is multiplied once, also if
    both are positions. Products with neighbors that do not exist are 0, as are those of positions
    that are not active.
    """
    forward = np.unique(np.abs(steps[steps != 0]))
    n = len(where.exists)
    sums, squares = np.zeros((2, n))
    pairs = np.zeros((len(where.places), 2, len(forward)))
    partners = np.empty((2 * len(forward) + TOGETHER, 3), np.int64)
    used = np.zeros(n, dtype=bool)
    active_places = where.places[where.active[where.places]]
    for step in (0, *steps):
        used[active_places + step] = True
    used &= where.exists
    out = np.zeros((len(where.places), len(steps)))
    moments = used, np.zeros(n, np.int64), sums, squares
    source = frames.flat, frames.starts, frames.swap
    _multiply(source, tuple(where), (forward, partners), pixels, moments, pairs)
    index = np.zeros(n, np.int64)
    index[where.places] = np.arange(len(where.places))
    _gather(tuple(where), (steps, forward), (index, squares, pairs), out)
    return Products(sums, squares, out)


@kernel
def _multiply(
    frames: Any, where: Any, around: Any, pixels: Any, moments: Any, pairs: AnyArray
) -> None:
    """Add the products of each position with its partners, block by block of pixels.

    ``pairs[i, 0, k]`` is the product with the frame `forward[k]` after position i, ``pairs[i, 1,
    k]`` that with the frame before it, unless this frame is a position itself, whose pair it is.
    ``done[f]`` is the number of blocks in the moments of frame f, which are only computed of frames
    that are `used`. `around` are the distances `forward` and memory for partners.
    """
    flat, starts, swap = frames
    places, active, exists = where
    forward, partners = around
    runs, blocks = pixels
    used, done, sums, squares = moments
    for block in range(len(blocks) - 1):
        block_runs = runs[blocks[block] : blocks[block + 1]]
        for i in range(len(places)):
            place = places[i]
            if not active[place]:
                continue
            count = _find_partners(place, active, exists, forward, partners)
            for p in range(-1, count):
                frame = place if p < 0 else partners[p, 0]
                if used[frame] and done[frame] == block:
                    for run in range(len(block_runs)):
                        a = starts[frame]
                        part = flat[a + block_runs[run, 0] : a + block_runs[run, 1]]
                        total, square = _moments(part, swap)
                        sums[frame] += total
                        squares[frame] += square
                    done[frame] = block + 1
            for run in range(len(block_runs)):
                span = block_runs[run, 0], block_runs[run, 1]
                _add_products(frames, place, partners, count, span, pairs[i])


@inner_kernel
def _find_partners(
    place: int, active: AnyArray, exists: AnyArray, forward: AnyArray, partners: AnyArray
) -> int:
    """Write the frame, side and number of the pairs of a position; return how many there are.

    More rows follow, with the position itself: pairs of partners are always full. Code for a single
    one adds up in another order, and the last bits of a product would depend on other neighbors.
    """
    count = 0
    for side in range(2):
        for k in range(len(forward)):
            frame = place + forward[k] if side == 0 else place - forward[k]
            if frame < 0 or frame >= len(exists) or not exists[frame]:
                continue
            if side == 1 and active[frame]:
                continue
            partners[count, 0] = frame
            partners[count, 1] = side
            partners[count, 2] = k
            count += 1
    for k in range(count, min(count + TOGETHER, len(partners))):
        partners[k, 0] = place
    return count


@inner_kernel
def _add_products(
    frames: Any, place: int, partners: AnyArray, count: int, span: Any, pairs: AnyArray
) -> None:
    _, _, swap = frames
    own = _pixels(frames, place, span)
    for p in range(0, count, TOGETHER):
        b, c = _pixels(frames, partners[p, 0], span), _pixels(frames, partners[p + 1, 0], span)
        found = _two_products(own, b, c, swap)
        for m in range(min(TOGETHER, count - p)):
            pairs[partners[p + m, 1], partners[p + m, 2]] += found[m]


@inner_kernel
def _pixels(frames: Any, frame: int, span: Any) -> Any:
    flat, starts, _ = frames
    return flat[starts[frame] + span[0] : starts[frame] + span[1]]


@summing_kernel
def _moments(a: AnyArray, swap: Any) -> tuple[float, float]:
    total, square = 0.0, 0.0
    for j in range(len(a)):
        x = np.float64(swapped(a[j], swap))
        total += x
        square += x * x
    return total, square


@summing_kernel
def _two_products(a: AnyArray, b: AnyArray, c: AnyArray, swap: Any) -> tuple[float, float]:
    p, q = 0.0, 0.0
    for j in range(len(a)):
        x = np.float64(swapped(a[j], swap))
        p += x * np.float64(swapped(b[j], swap))
        q += x * np.float64(swapped(c[j], swap))
    return p, q


@kernel
def _gather(where: Any, distances: Any, found: Any, out: AnyArray) -> None:
    """Write the product of each position with each neighbor, shape (positions, neighbors)."""
    places, active, exists = where
    steps, forward = distances
    index, squares, pairs = found
    for i in range(len(places)):
        place = places[i]
        if not active[place]:
            continue
        for n in range(len(steps)):
            frame = place + steps[n]
            if not exists[frame]:
                continue
            if steps[n] == 0:
                out[i, n] = squares[place]
                continue
            k = np.searchsorted(forward, abs(steps[n]))
            if steps[n] > 0:
                out[i, n] = pairs[i, 0, k]
            elif active[frame]:
                out[i, n] = pairs[index[frame], 0, k]
            else:
                out[i, n] = pairs[i, 1, k]
