"""Weighted sums over rings around a center of its own for each frame."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from udfdask.kernels.cpu.compile import summing_kernel
from udfdask.kernels.cpu.rows import swapped
from udfdask.types import AnyArray


def add_rings_about(
    flat: AnyArray,
    frame_step: int,
    row_step: int,
    swap: bool | None,
    window: tuple[int, int, int, int],
    centers: AnyArray,
    inner: float,
    thickness: float,
    sums: AnyArray,
    covered: AnyArray,
) -> None:
    """Add sum(w * I) and sum(w) of rings around each frame's own center, shape (frames, rings).

    `flat` and the steps come from `rows_in_memory`, `swap` from `as_native`. `window` holds the
    first row and column of the tile in the frame, its height and its width. The rings have the same
    thickness and start at the inner radius; the weights are those of `radial_bins`. `centers` has
    the shape (frames, 2), float64; if a center is not finite, its sums are NaN.
    """
    kernel = _add_wide_rings if thickness >= 1 else _add_narrow_rings
    kernel(flat, frame_step, row_step, swap, *window, centers, inner, thickness, sums, covered)


@summing_kernel
def _columns(y: int, cy: float, cx: float, reach: float, width: int) -> tuple[int, int]:
    """Return start and stop of the columns of a row that are closer to a center than `reach`."""
    half = math.sqrt(max(reach * reach - (y - cy) ** 2, 0.0))
    if half == 0 or cx + half < 0 or cx - half > width - 1:
        return 0, 0
    return int(max(math.ceil(cx - half), 0.0)), int(min(math.floor(cx + half), width - 1.0)) + 1


@summing_kernel
def _add_wide_rings(
    flat: Any,
    frame_step: int,
    row_step: int,
    swap: Any,
    oy: int,
    ox: int,
    height: int,
    width: int,
    centers: Any,
    inner: float,
    thickness: float,
    sums: Any,
    covered: Any,
) -> None:
    """Add rings that are at least a pixel thick: each pixel is in at most two of them.

    These are the rings on both sides of the nearest edge. Edge e separates ring e - 1 from ring e.
    `soft` is the weight in ring e, `rest` that in ring e - 1. Each edge has four sums: of
    rest * I, of soft * I, of rest and of soft.
    """
    n_rings = sums.shape[1]
    # pixels use two sets alternately: an addition need not wait for that of the previous pixel
    at_edge = np.empty((2, n_rings + 1, 4))
    for f in range(sums.shape[0]):
        cy, cx = centers[f, 0] - oy, centers[f, 1] - ox
        if not (math.isfinite(cy) and math.isfinite(cx)):
            sums[f, :] = np.nan
            continue
        at_edge[:] = 0
        for y in range(height):
            first, stop = _columns(y, cy, cx, inner + n_rings * thickness + 0.5, width)
            row = flat[f * frame_step + y * row_step + first :]
            for j in range(stop - first):
                value = np.float64(swapped(row[j], swap))
                d = math.sqrt((y - cy) ** 2 + (first + j - cx) ** 2)
                edge = min(max(int((d - inner) / thickness + 0.5), 0), n_rings)
                soft = min(max(d - inner - edge * thickness + 0.5, 0.0), 1.0)
                if d < 0.5 and inner < 0.5:
                    soft = 1 - inner
                rest = 1 - soft
                four = at_edge[j & 1, edge]
                # a NaN must not reach a ring in which it has no weight
                four[0] += rest * value if rest > 0 else 0.0
                four[1] += soft * value if soft > 0 else 0.0
                four[2] += rest
                four[3] += soft
        for b in range(n_rings):
            for k in range(2):
                below, above = at_edge[k, b], at_edge[k, b + 1]
                sums[f, b] += below[1] + above[0]
                covered[f, b] += below[3] + above[2]


@summing_kernel
def _add_narrow_rings(
    flat: Any,
    frame_step: int,
    row_step: int,
    swap: Any,
    oy: int,
    ox: int,
    height: int,
    width: int,
    centers: Any,
    inner: float,
    thickness: float,
    sums: Any,
    covered: Any,
) -> None:
    """Add rings that are thinner than a pixel, so that a pixel is in several of them."""
    n_rings = sums.shape[1]
    for f in range(sums.shape[0]):
        cy, cx = centers[f, 0] - oy, centers[f, 1] - ox
        if not (math.isfinite(cy) and math.isfinite(cx)):
            sums[f, :] = np.nan
            continue
        for y in range(height):
            first, stop = _columns(y, cy, cx, inner + n_rings * thickness + 0.5, width)
            row = flat[f * frame_step + y * row_step :]
            for x in range(first, stop):
                d = math.sqrt((y - cy) ** 2 + (x - cx) ** 2)
                lowest = max(math.ceil((d - inner - 0.5) / thickness) - 1, 0)
                highest = min(math.floor((d - inner + 0.5) / thickness), n_rings - 1)
                for b in range(lowest, highest + 1):
                    middle = inner + (b + 0.5) * thickness
                    w = min(max(thickness / 2 + 0.5 - abs(d - middle), 0.0), 1.0)
                    if b == 0 and inner < 0.5 and d < 0.5:
                        w = 1 - inner
                    if w > 0:
                        sums[f, b] += w * np.float64(swapped(row[x], swap))
                        covered[f, b] += w
