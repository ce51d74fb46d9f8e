"""Products of sparse frames with masks, dense or sparse."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.kernels.cpu.sparse_sums import Entries
from udfdask.kernels.numba_internals.compile import contracting_kernel


class PixelMasks(NamedTuple):
    """The nonzero `weights` of masks, pixel by pixel: from ``starts[p]`` to ``starts[p + 1]``.

    `starts` are int64. `masks` has the number of the mask of each weight, uint32.
    """

    starts: AnyArray
    masks: AnyArray
    weights: AnyArray


def add_entry_products(
    entries: Entries, masks: AnyArray | PixelMasks, wide: np.dtype[Any], out: AnyArray
) -> None:
    """Add the dot products of sparse frames with masks to `out`, shape (frames, masks).

    Dense `masks` have the shape (pixels, masks). Products are added up in the dtype `wide`.
    """
    if not len(entries.values) or not out.size:
        return
    sums = np.zeros(out.shape, wide)
    if isinstance(masks, PixelMasks):
        _add_sparse(tuple(entries), tuple(masks), sums)
    else:
        _add_dense(*entries, masks, sums)
    out += sums.astype(out.dtype, copy=False)


@contracting_kernel
def _add_dense(starts: Any, pixels: Any, values: Any, matrix: Any, sums: Any) -> None:
    """Add dot products with dense masks; a frame's sums are loaded once for four entries."""
    kind = sums.dtype.type
    for f in range(len(sums)):
        own_pixels, own = pixels[starts[f] : starts[f + 1]], values[starts[f] : starts[f + 1]]
        total = sums[f]
        fours = len(own) - len(own) % 4
        for k in range(0, fours, 4):
            a, b = kind(own[k]), kind(own[k + 1])
            c, d = kind(own[k + 2]), kind(own[k + 3])
            p, q = matrix[own_pixels[k]], matrix[own_pixels[k + 1]]
            r, s = matrix[own_pixels[k + 2]], matrix[own_pixels[k + 3]]
            for m in range(len(total)):
                total[m] += (a * kind(p[m]) + b * kind(q[m])) + (c * kind(r[m]) + d * kind(s[m]))
        for k in range(fours, len(own)):
            a, p = kind(own[k]), matrix[own_pixels[k]]
            for m in range(len(total)):
                total[m] += a * kind(p[m])


@contracting_kernel
def _add_sparse(entries: Any, by_pixel: Any, sums: AnyArray) -> None:
    starts, pixels, values = entries
    first, masks, weights = by_pixel
    kind = sums.dtype.type
    for f in range(len(sums)):
        own_pixels, own = pixels[starts[f] : starts[f + 1]], values[starts[f] : starts[f + 1]]
        total = sums[f]
        for k in range(len(own)):
            value, p = kind(own[k]), np.int64(own_pixels[k])
            for j in range(first[p], first[p + 1]):
                total[masks[j]] += value * kind(weights[j])
