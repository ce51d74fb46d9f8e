"""Cuts frames into blocks, so that what is made of them meanwhile needs little memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

BLOCK_BYTES = 64 << 20
"""Bytes of what is made of a block: as few as keep a device busy for longer than Python takes."""


def blocks_of(frames: Any, itemsize: int) -> Iterator[Any]:
    """Yield blocks of frames, shape (n, *part), of which copies with such items are made."""
    n = int(frames.shape[0])
    if not frames.size:
        return
    step = max(1, BLOCK_BYTES // (frames.size // n * itemsize))
    for first in range(0, n, step):
        yield frames[first : first + step]
