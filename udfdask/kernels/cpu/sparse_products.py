"""Multiply sparse frames with dense or sparse masks, only at the stored pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from udfdask.arrays.backends.read_only import locked
from udfdask.kernels.cpu.compile import contracting_kernel, kernel
from udfdask.kernels.cpu.sparse_entries import Entries
from udfdask.types import AnyArray


class PixelMasks(NamedTuple):
    """The nonzero values of masks, pixel by pixel."""

    starts: AnyArray
    """Index of the first value of each pixel, then the number of values, int64."""
    masks: AnyArray
    """Mask of each value, uint32."""
    weights: AnyArray
    """The nonzero values."""


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
        _add_sparse(*entries, *masks, sums)
    else:
        _add_dense(*entries, masks, sums)
    out += sums.astype(out.dtype, copy=False)


@contracting_kernel
def _add_dense(
    starts: AnyArray, pixels: AnyArray, values: AnyArray, matrix: AnyArray, sums: AnyArray
) -> None:
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
def _add_sparse(
    starts: AnyArray,
    pixels: AnyArray,
    values: AnyArray,
    first: AnyArray,
    masks: AnyArray,
    weights: AnyArray,
    sums: AnyArray,
) -> None:
    """Add dot products with sparse masks."""
    kind = sums.dtype.type
    for f in range(len(sums)):
        own_pixels, own = pixels[starts[f] : starts[f + 1]], values[starts[f] : starts[f + 1]]
        total = sums[f]
        for k in range(len(own)):
            value, p = kind(own[k]), np.int64(own_pixels[k])
            for j in range(first[p], first[p + 1]):
                total[masks[j]] += value * kind(weights[j])


def moved_entries(
    entries: Entries,
    shifts: AnyArray,
    origin: Sequence[int],
    sizes: Sequence[int],
    sig: Sequence[int],
) -> Entries:
    """Move the entries of each frame by minus its shift; return them as entries of full frames.

    `shifts` is int64, shape (frames, sig dims). The entries belong to the part of the signal that
    starts at pixel `origin` and has the shape `sizes`; `sig` is the shape of a frame. Entries that
    leave the frame are dropped.
    """
    starts, pixels, values = entries
    kept = np.empty_like(starts), np.empty_like(pixels), np.empty_like(values)
    where = (np.array(each, np.int64) for each in (origin, sizes, sig))
    n = _move(*entries, np.ascontiguousarray(shifts), *where, *kept)
    return Entries(locked(kept[0]), locked(kept[1][:n]), locked(kept[2][:n]))


@kernel
def _move(
    starts: AnyArray,
    pixels: AnyArray,
    values: AnyArray,
    shifts: AnyArray,
    origin: AnyArray,
    sizes: AnyArray,
    sig: AnyArray,
    new_starts: AnyArray,
    new_pixels: AnyArray,
    new_values: AnyArray,
) -> int:
    """Write the moved entries one after another; return their number."""
    n = 0
    new_starts[0] = 0
    for f in range(len(starts) - 1):
        for k in range(starts[f], starts[f + 1]):
            rest, pixel, step, inside = np.int64(pixels[k]), 0, 1, True
            for axis in range(len(sizes) - 1, -1, -1):
                place = rest % sizes[axis] + origin[axis] - shifts[f, axis]
                rest //= sizes[axis]
                inside &= 0 <= place < sig[axis]
                pixel += place * step
                step *= sig[axis]
            if inside:
                new_pixels[n], new_values[n] = pixel, values[k]
                n += 1
        new_starts[f + 1] = n
    return n
