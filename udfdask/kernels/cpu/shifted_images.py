"""Add images on a finer grid, each at its own place."""

from __future__ import annotations

from typing import Any

from udfdask.kernels.numba_internals.compile import contracting_kernel
from udfdask.kernels.numba_internals.rows import swapped

BLOCK = 16
"""Frames between which a pixel is not left: their sums are at different places, those of the next
pixels of a frame at the same ones, and would wait for each other."""


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
    for begin in range(0, len(starts), BLOCK):
        end = min(begin + BLOCK, len(starts))
        for k in range(len(pixels)):
            here, some = weights[k], 0.0
            for f in range(begin, end):
                value = swapped(flat[f * step + pixels[k]], swap)
                first = starts[f] + corners[k]
                some += value
                out[first] += here[0] * value
                out[first + 1] += here[1] * value
                out[first + width] += here[2] * value
                out[first + width + 1] += here[3] * value
            sums[k] += some
