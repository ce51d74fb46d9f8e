"""Products of frames with sparse masks, and of sparse chunks with masks.

For dense frames, `_gather` reads the pixels of a mask from eight frames at a time. `_lanes` first
transposes the frames, so that each pixel of 32 frames is contiguous, and multiplies all of them at
once: this takes longer at first, and less time per pixel of a mask.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.kernels.cpu.sparse_sums import Entries
from udfdask.kernels.numba_internals.compile import contracting_kernel, inner_kernel
from udfdask.kernels.numba_internals.reading import TOGETHER, eight_at
from udfdask.kernels.numba_internals.rows import as_rows
from udfdask.kernels.overflow import compiled_dtype

LANES = 32
"""Frames that are transposed and multiplied together."""

LINE = 16
"""Pixels of a frame that are transposed at a time: a cache line of float32."""

NARROW = 128
"""Values that are added up in the dtype of the masks, before the sum is added to a wider one."""

FEWEST = 12
"""Smallest number of frames for `_lanes`."""

DENSEST = 1.5
"""Smallest average number of mask values per pixel for `_lanes`: `_gather` takes 0.5 ns for each
value, `_lanes` 0.65 ns for the pixel and 0.1 ns for each value."""


class MaskEntries(NamedTuple):
    """The nonzero values of masks, mask by mask: from ``starts[m]`` to ``starts[m + 1]``, int64.

    `pixels` are uint32. `wide` has the values in a dtype for any sum of products: float64,
    complex128 or 64-bit integers; `values` in that of the result, or in one with exact sums.
    """

    starts: AnyArray
    pixels: AnyArray
    wide: AnyArray
    values: AnyArray


def add_sparse_products(frames: AnyArray, masks: MaskEntries, out: AnyArray) -> None:
    """Add the dot products of frames, shape (n, pixels), with masks to `out`, shape (n, masks)."""
    if not len(frames) or not len(masks.pixels):
        return
    flat, n, step, pixels, _ = as_rows(frames.astype(compiled_dtype(frames.dtype), copy=False))
    same = out.dtype == masks.values.dtype
    target = out if same else np.zeros(out.shape, dtype=masks.values.dtype)
    common = (flat, step, n, pixels), masks.starts, masks.pixels
    if n >= FEWEST and len(masks.pixels) > DENSEST * pixels:
        _lanes(*common, masks.values, masks.wide[:0], target)
    else:
        _gather(*common, masks.wide, target)
    if not same:
        out += target.astype(out.dtype)


@contracting_kernel
def _gather(frames: Any, starts: Any, places: Any, weights: Any, out: Any) -> None:
    """Add dot products; a mask is read once for eight frames."""
    flat, step, n, pixels = frames
    kind = weights.dtype.type
    zero = kind(0)
    for f in range(0, n - n % TOGETHER, TOGETHER):
        for m in range(len(starts) - 1):
            sums = (zero, zero, zero, zero, zero, zero, zero, zero)
            for j in range(starts[m], starts[m + 1]):
                eight = eight_at(flat, f * step, step, np.int64(places[j]), None, kind)
                sums = _plus_products(sums, weights[j], eight)
            for k in range(TOGETHER):
                out[f + k, m] += sums[k]
    for f in range(n - n % TOGETHER, n):
        row = flat[f * step : f * step + pixels]
        for m in range(len(starts) - 1):
            s = zero
            for j in range(starts[m], starts[m + 1]):
                s += weights[j] * kind(row[places[j]])
            out[f, m] += s


@inner_kernel
def _plus_products(sums: Any, w: Any, eight: Any) -> Any:
    """Return eight sums plus a weight times each of eight values."""
    s, t, u, v, x, y, z, r = sums
    a, b, c, d, e, f, g, h = eight
    four = s + w * a, t + w * b, u + w * c, v + w * d
    return (*four, x + w * e, y + w * f, z + w * g, r + w * h)


@contracting_kernel
def _lanes(frames: Any, starts: Any, places: Any, weights: Any, wide: Any, out: Any) -> None:
    """Add dot products of transposed frames; `wide` is empty, its dtype is that of the sums."""
    flat, step, n, pixels = frames
    # all lanes are always added up: the last group may leave old values in some, which do not count
    transposed = np.zeros((pixels, LANES), flat.dtype)
    total, sums = np.empty(LANES, weights.dtype), np.empty(LANES, wide.dtype)
    for first in range(0, n, LANES):
        lanes = min(LANES, n - first)
        _transpose(flat[first * step :], step, lanes, transposed)
        for m in range(len(starts) - 1):
            sums[:] = 0
            for start in range(starts[m], starts[m + 1], NARROW):
                stop = min(start + NARROW, starts[m + 1])
                _add_pixels(transposed, places[start:stop], weights[start:stop], total)
                for f in range(LANES):
                    sums[f] += total[f]
            for f in range(lanes):
                out[first + f, m] += sums[f]


@inner_kernel
def _transpose(flat: AnyArray, step: int, lanes: int, out: AnyArray) -> None:
    """Write frames to `out`, shape (pixels, LANES), `LINE` pixels of each frame at a time."""
    pixels = len(out)
    end = pixels - pixels % LINE
    for p0 in range(0, end, LINE):
        for f in range(lanes):
            row = flat[f * step + p0 : f * step + p0 + LINE]
            for p in range(LINE):
                out[p0 + p, f] = row[p]
    for p in range(end, pixels):
        for f in range(lanes):
            out[p, f] = flat[f * step + p]


@inner_kernel
def _add_pixels(lanes: AnyArray, places: AnyArray, weights: AnyArray, total: AnyArray) -> None:
    """Write the weighted sums of some pixels to `total`, which is loaded once for eight pixels."""
    kind = total.dtype.type
    total[:] = kind(0)
    eights = len(places) - len(places) % 8
    for j in range(0, eights, 8):
        w0, w1, w2, w3 = weights[j], weights[j + 1], weights[j + 2], weights[j + 3]
        w4, w5, w6, w7 = weights[j + 4], weights[j + 5], weights[j + 6], weights[j + 7]
        b0, b1 = lanes[places[j]], lanes[places[j + 1]]
        b2, b3 = lanes[places[j + 2]], lanes[places[j + 3]]
        b4, b5 = lanes[places[j + 4]], lanes[places[j + 5]]
        b6, b7 = lanes[places[j + 6]], lanes[places[j + 7]]
        for f in range(LANES):
            total[f] += (
                (w0 * kind(b0[f]) + w1 * kind(b1[f])) + (w2 * kind(b2[f]) + w3 * kind(b3[f]))
            ) + ((w4 * kind(b4[f]) + w5 * kind(b5[f])) + (w6 * kind(b6[f]) + w7 * kind(b7[f])))
    for j in range(eights, len(places)):
        w, b = weights[j], lanes[places[j]]
        for f in range(LANES):
            total[f] += w * kind(b[f])


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
    """Add dot products with sparse masks."""
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
