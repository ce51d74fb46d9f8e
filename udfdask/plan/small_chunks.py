"""Choose which small chunks are joined, so that one task processes several of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

Chunks = tuple[tuple[int, ...], ...]
"""The sizes of the chunks along each axis."""


def joined_chunks(chunks: Chunks, itemsize: int, least: int) -> Chunks:
    """Return the chunks after joining neighbors until each has at least `least` bytes.

    Neighbors along the last axis are joined first. An earlier axis follows if the chunks are still
    smaller when the later axes are whole. So frames become whole before positions are joined, and
    a joined chunk has neighboring positions of the scan. A smaller rest at the end of an axis is
    joined too: chunks that were smaller than `least` bytes become smaller than three times that.
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
