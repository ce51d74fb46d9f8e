"""Good sizes of chunks, for advice and to join small ones: neither too small nor too large."""

from __future__ import annotations

import math
from collections.abc import Sequence

from udfdask.base.config import chunk_bytes

Chunks = tuple[tuple[int, ...], ...]
"""The sizes of the chunks along each axis."""

SMALL, LARGE = 1 / 16, 2
"""Sizes between which chunks are good, relative to dask's 128 MiB: 8 to 256 MiB."""


def good_chunks(
    chunks: Sequence[Sequence[int]], sig_dims: int, itemsize: int, limit: float = math.inf
) -> tuple[int, ...]:
    """Return chunk sizes with whole frames, between 8 and 256 MiB, and at most `limit` bytes.

    Navigation sizes of `chunks` are kept if they are good, and else divided evenly or merged, so
    that a rechunk moves little data.
    """
    nav = len(chunks) - sig_dims
    sizes = [*(max(axis, default=0) for axis in chunks[:nav]), *map(sum, chunks[nav:])]
    best = min(chunk_bytes(), limit)
    nbytes, room = math.prod(sizes) * itemsize, int(best // itemsize)
    if nbytes > min(LARGE * best, limit):
        for axis in range(nav):  # divided evenly, the first axis first
            parts = math.ceil(math.prod(sizes) / max(1, room))
            sizes[axis] = max(1, math.ceil(sizes[axis] / max(1, parts)))
    elif nbytes < SMALL * best:
        for axis in reversed(range(nav)):
            factor = room // max(1, math.prod(sizes))
            sizes[axis] = min(sum(chunks[axis]), sizes[axis] * max(1, factor))
    return tuple(sizes)


def joined_chunks(chunks: Chunks, itemsize: int, least: int) -> Chunks:
    """Return the chunks after joining neighbors until each has at least `least` bytes.

    Neighbors along the last axis are joined first, so that frames become whole before positions are
    joined. A smaller rest at the end of an axis is joined too.
    """
    joined = list(chunks)
    for axis in reversed(range(len(chunks))):
        others = math.prod(max(c, default=0) for k, c in enumerate(joined) if k != axis)
        needed = -(-least // max(1, others * itemsize))
        joined[axis] = _join_axis(chunks[axis], needed)
        if len(joined[axis]) > 1:
            break
    return tuple(joined)


def _join_axis(sizes: Sequence[int], needed: int) -> tuple[int, ...]:
    """Return the sizes of the joined chunks of one axis, each at least `needed` positions long."""
    joined: list[int] = []
    current = 0
    for size in sizes:
        current += size
        if current >= needed:
            joined.append(current)
            current = 0
    if current and joined:
        joined[-1] += current
    elif current or not joined:
        joined.append(current)
    return tuple(joined)
