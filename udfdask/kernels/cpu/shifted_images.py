"""Add images on a finer grid, each at its own place."""

from __future__ import annotations

from typing import Any

from udfdask.kernels.numba_internals.compile import contracting_kernel
from udfdask.kernels.numba_internals.rows import swapped


@contracting_kernel
def add_images(
    total: Any, starts: Any, rows: Any, pixels: Any, corners: Any, weights: Any, sums: Any
) -> None:
    """Add some pixels of each frame of `Rows` to four pixels of `total` each, and to their sums.

    These begin at the flat index ``start + corner``. The first two of the four weights are for a
    pixel and the next one, the others for those in the row below.
    """
    flat, _, step, _, swap = rows
    width, out = total.shape[1], total.reshape(-1)
    for f in range(len(starts)):
        for k in range(len(pixels)):
            value, first = swapped(flat[f * step + pixels[k]], swap), starts[f] + corners[k]
            sums[k] += value
            out[first] += weights[k, 0] * value
            out[first + 1] += weights[k, 1] * value
            out[first + width] += weights[k, 2] * value
            out[first + width + 1] += weights[k, 3] * value
