"""Add images on a finer grid, each at its own place."""

from __future__ import annotations

from typing import Any

from udfdask.kernels.numba_internals.compile import contracting_kernel


@contracting_kernel
def add_images(total: Any, starts: Any, frames: Any, corners: Any, weights: Any, sums: Any) -> None:
    """Add each beam of frames, shape (frames, beams), to four pixels of `total`, and to its sum.

    They begin at the flat index ``start + corner``. The first two of the four weights are for a
    pixel and the next one, the others for those in the row below.
    """
    width, flat = total.shape[1], total.reshape(-1)
    for f in range(len(frames)):
        for k in range(len(corners)):
            value, first = frames[f, k], starts[f] + corners[k]
            sums[k] += value
            flat[first] += weights[k, 0] * value
            flat[first + 1] += weights[k, 1] * value
            flat[first + width] += weights[k, 2] * value
            flat[first + width + 1] += weights[k, 3] * value
