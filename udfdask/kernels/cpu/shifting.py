"""Frames moved by whole pixels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from udfdask.types import AnyArray


def moved_back(frames: AnyArray, shifts: AnyArray) -> AnyArray:
    """Return frames, shape (n, *sig), each moved by minus its shift, ints of shape (n, sig dims).

    ``result[f, y, x] = frames[f, y + sy, x + sx]``, and 0 where that lies outside of the frame.
    """
    result = np.zeros(frames.shape, dtype=frames.dtype)
    for frame, shift, target in zip(frames, shifts.tolist(), result, strict=True):
        here, there = overlap(shift, frame.shape)
        target[there] = frame[here]
    return result


def overlap(
    shift: Sequence[int], sizes: Sequence[int]
) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Return the part of a frame on which a shifted mask of its size lies, and that of the mask."""
    pairs = list(zip(shift, sizes, strict=True))
    frame = tuple(slice(min(n, max(0, s)), max(0, min(n, n + s))) for s, n in pairs)
    mask = tuple(slice(min(n, max(0, -s)), max(0, min(n, n - s))) for s, n in pairs)
    return frame, mask
