"""Good sizes of chunks: whole frames, neither too few nor too many. All advice comes from here."""

from __future__ import annotations

import math
from collections.abc import Sequence

from udfdask.config import chunk_bytes

SMALL, LARGE = 1 / 16, 2
"""Sizes between which chunks are good, relative to dask's 128 MiB: 8 to 256 MiB."""


def good_chunks(
    chunks: Sequence[Sequence[int]], sig_dims: int, itemsize: int, limit: float = math.inf
) -> tuple[int, ...]:
    """Return chunk sizes with whole frames, between 8 and 256 MiB, and at most `limit` bytes.

    `chunks` are dask's, in positions and pixels along each axis. Navigation sizes are kept if they
    are good, and otherwise divided evenly or merged, so that a rechunk moves little data.
    """
    nav = len(chunks) - sig_dims
    sizes = [*(max(axis, default=0) for axis in chunks[:nav]), *map(sum, chunks[nav:])]
    best = min(chunk_bytes(), limit)
    nbytes, room = math.prod(sizes) * itemsize, int(best // itemsize)
    if nbytes > min(LARGE * best, limit):
        return divided(sizes, nav, room)
    if nbytes < SMALL * best:
        for axis in reversed(range(nav)):
            factor = room // max(1, math.prod(sizes))
            sizes[axis] = min(sum(chunks[axis]), sizes[axis] * max(1, factor))
    return tuple(sizes)


def divided(sizes: Sequence[int], nav: int, room: int) -> tuple[int, ...]:
    """Divide the first `nav` sizes evenly, the first axis first, into at most `room` values."""
    smaller = list(sizes)
    for axis in range(nav):
        parts = math.ceil(math.prod(smaller) / max(1, room))
        smaller[axis] = max(1, math.ceil(smaller[axis] / max(1, parts)))
    return tuple(smaller)
