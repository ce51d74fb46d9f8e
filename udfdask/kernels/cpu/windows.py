"""Cut windows out of frames, at positions that may differ from frame to frame."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from udfdask.kernels.numba_internals.compile import kernel
from udfdask.types import AnyArray


def moved_back(frames: AnyArray, shifts: AnyArray) -> AnyArray:
    """Return frames, shape (n, *sig), each moved by minus its shift, ints of shape (n, sig dims).

    ``result[f, y, x] = frames[f, y + sy, x + sx]``, and 0 if this pixel is outside the frame.
    """
    result = np.zeros(frames.shape, dtype=frames.dtype)
    for frame, shift, target in zip(frames, shifts.tolist(), result, strict=True):
        source_part, target_part = overlap(shift, frame.shape)
        target[target_part] = frame[source_part]
    return result


def overlap(
    shift: Sequence[int], sizes: Sequence[int]
) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Return the overlap of a frame with a shifted mask of its size, in the frame and the mask."""
    pairs = list(zip(shift, sizes, strict=True))
    frame = tuple(slice(min(n, max(0, s)), max(0, min(n, n + s))) for s, n in pairs)
    mask = tuple(slice(min(n, max(0, -s)), max(0, min(n, n - s))) for s, n in pairs)
    return frame, mask


@kernel
def cut_windows(frames: AnyArray, corners: AnyArray, out: AnyArray) -> None:
    """Write windows of frames to `out`, with 0 outside the frame.

    `frames` has the shape (n, height, width). `corners` holds the first pixel (y, x) of each of k
    windows, shape (n, k, 2), or (1, k, 2) if they are the same in all frames. `out` has the shape
    (n, k, window height, window width).
    """
    n, height, width = frames.shape
    _, k, rows, columns = out.shape
    for f in range(n):
        g = f if len(corners) > 1 else 0
        for w in range(k):
            y, x = corners[g, w, 0], corners[g, w, 1]
            first = min(max(0, -x), columns)
            last = max(min(columns, width - x), first)
            for i in range(rows):
                line = out[f, w, i]
                if not 0 <= y + i < height:
                    line[:] = 0
                    continue
                line[:first] = 0
                line[last:] = 0
                for j in range(first, last):
                    line[j] = frames[f, y + i, x + j]
