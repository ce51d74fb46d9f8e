"""Frames times sparse masks, in the dtype in which the frames are.

Two ways: `gather` picks the pixels of a mask out of eight frames at a time; `lanes` first puts the
frames beside each other, pixel by pixel, and multiplies all of them at once. The second costs more
at first and less for each pixel of a mask.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfdask.kernels.cpu.compile import contracting_kernel, inner_kernel
from udfdask.types import AnyArray

LANES = 32
"""Frames that lie beside each other."""

LINE = 16
"""Pixels of a frame that are put there at a time: as many as a cache line has."""

NARROW = 128
"""Values that are added up in the dtype of the masks before that goes into a wider sum."""

FEWEST = 12
"""Frames from which it pays to put them beside each other."""

DENSEST = 1.5
"""Values of all masks at a pixel, on the average, from which it pays: gathering takes 0.5 ns for
each, the other way 0.65 ns for the pixel and 0.1 ns for each."""

_OTHERS = {"?": "u1", "e": "f4"}
"""Codes of dtypes that the kernels do not take, with those that stand in for them."""


class SparseRows(NamedTuple):
    """Masks as what they hold at the pixels where they are not 0, mask by mask."""

    starts: AnyArray
    """Where the values of each mask begin, and where they end, int64, shape (masks + 1,)."""
    pixels: AnyArray
    """Pixel of each value, uint32."""
    wide: AnyArray
    """The values in a dtype that holds any sum of products: float64, complex128, or 64-bit."""
    values: AnyArray
    """The values in the dtype of the result, or one in which integer sums are exact."""


def add_sparse_products(frames: AnyArray, masks: SparseRows, out: AnyArray) -> None:
    """Add the dot products of frames, shape (n, pixels), with masks to `out`, shape (n, masks)."""
    n, pixels = frames.shape
    if not n or not len(masks.pixels):
        return
    other = _OTHERS.get(frames.dtype.char)
    if frames.dtype == np.bool_:
        frames = frames.view(np.uint8)
    elif other is not None:
        frames = frames.astype(other)
    flat, step = _flat(frames)
    dense = n >= FEWEST and len(masks.pixels) > DENSEST * pixels
    same = out.dtype == masks.values.dtype
    target = out if same else np.zeros(out.shape, dtype=masks.values.dtype)
    where = (flat, step, n, pixels, masks.starts, masks.pixels)
    if dense:
        _lanes(*where, masks.values, masks.wide[:0], target)
    else:
        _gather(*where, masks.wide, target)
    if not same:
        out += target.astype(out.dtype)


def _flat(frames: AnyArray) -> tuple[AnyArray, int]:
    """Return frames as read-only flat memory, with the step from one to the next in values."""
    n, pixels = frames.shape
    item = frames.itemsize
    between, along = frames.strides
    if not (n == 1 or (between >= 0 and between % item == 0)) or along != item:
        frames = np.ascontiguousarray(frames)
        between = frames.strides[0]
    step = pixels if n == 1 else between // item
    span = step * (n - 1) + pixels
    return np.lib.stride_tricks.as_strided(frames, (span,), (item,), writeable=False), step


@contracting_kernel
def _gather(
    flat: AnyArray,
    step: int,
    n: int,
    pixels: int,
    starts: AnyArray,
    places: AnyArray,
    weights: AnyArray,
    out: AnyArray,
) -> None:
    """Add dot products; eight frames share the reading of a mask."""
    kind = weights.dtype.type
    zero = kind(0)
    for f in range(0, n - 7, 8):
        r0 = flat[f * step : f * step + pixels]
        r1 = flat[(f + 1) * step : (f + 1) * step + pixels]
        r2 = flat[(f + 2) * step : (f + 2) * step + pixels]
        r3 = flat[(f + 3) * step : (f + 3) * step + pixels]
        r4 = flat[(f + 4) * step : (f + 4) * step + pixels]
        r5 = flat[(f + 5) * step : (f + 5) * step + pixels]
        r6 = flat[(f + 6) * step : (f + 6) * step + pixels]
        r7 = flat[(f + 7) * step : (f + 7) * step + pixels]
        for m in range(len(starts) - 1):
            s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = zero
            for j in range(starts[m], starts[m + 1]):
                p = places[j]
                w = weights[j]
                s0 += w * kind(r0[p])
                s1 += w * kind(r1[p])
                s2 += w * kind(r2[p])
                s3 += w * kind(r3[p])
                s4 += w * kind(r4[p])
                s5 += w * kind(r5[p])
                s6 += w * kind(r6[p])
                s7 += w * kind(r7[p])
            out[f, m] += s0
            out[f + 1, m] += s1
            out[f + 2, m] += s2
            out[f + 3, m] += s3
            out[f + 4, m] += s4
            out[f + 5, m] += s5
            out[f + 6, m] += s6
            out[f + 7, m] += s7
    for f in range(n - n % 8, n):
        row = flat[f * step : f * step + pixels]
        for m in range(len(starts) - 1):
            s = zero
            for j in range(starts[m], starts[m + 1]):
                s += weights[j] * kind(row[places[j]])
            out[f, m] += s


@contracting_kernel
def _lanes(
    flat: AnyArray,
    step: int,
    n: int,
    pixels: int,
    starts: AnyArray,
    places: AnyArray,
    weights: AnyArray,
    wide: AnyArray,
    out: AnyArray,
) -> None:
    """Add dot products; frames lie beside each other. Sums have the dtype of `wide` in the end."""
    # all lanes are added up, also where the last frames leave some of them with what was there
    beside = np.zeros((pixels, LANES), flat.dtype)
    total, sums = np.empty(LANES, weights.dtype), np.empty(LANES, wide.dtype)
    for first in range(0, n, LANES):
        lanes = min(LANES, n - first)
        _put_beside(flat[first * step :], step, lanes, beside)
        for m in range(len(starts) - 1):
            sums[:] = 0
            for start in range(starts[m], starts[m + 1], NARROW):
                stop = min(start + NARROW, starts[m + 1])
                _add_pixels(beside, places[start:stop], weights[start:stop], total)
                for f in range(LANES):
                    sums[f] += total[f]
            for f in range(lanes):
                out[first + f, m] += sums[f]


@inner_kernel
def _put_beside(flat: AnyArray, step: int, lanes: int, beside: AnyArray) -> None:
    """Put frames beside each other, pixel by pixel, as many pixels at a time as `LINE`."""
    pixels = len(beside)
    whole = pixels - pixels % LINE
    for p0 in range(0, whole, LINE):
        for f in range(lanes):
            row = flat[f * step + p0 : f * step + p0 + LINE]
            for p in range(LINE):
                beside[p0 + p, f] = row[p]
    for p in range(whole, pixels):
        for f in range(lanes):
            beside[p, f] = flat[f * step + p]


@inner_kernel
def _add_pixels(beside: AnyArray, places: AnyArray, weights: AnyArray, total: AnyArray) -> None:
    """Write the weighted sums of some pixels to `total`; eight share its reading."""
    kind = total.dtype.type
    total[:] = kind(0)
    eights = len(places) - len(places) % 8
    for j in range(0, eights, 8):
        w0, w1, w2, w3 = weights[j], weights[j + 1], weights[j + 2], weights[j + 3]
        w4, w5, w6, w7 = weights[j + 4], weights[j + 5], weights[j + 6], weights[j + 7]
        b0, b1 = beside[places[j]], beside[places[j + 1]]
        b2, b3 = beside[places[j + 2]], beside[places[j + 3]]
        b4, b5 = beside[places[j + 4]], beside[places[j + 5]]
        b6, b7 = beside[places[j + 6]], beside[places[j + 7]]
        for f in range(LANES):
            total[f] += (
                (w0 * kind(b0[f]) + w1 * kind(b1[f])) + (w2 * kind(b2[f]) + w3 * kind(b3[f]))
            ) + ((w4 * kind(b4[f]) + w5 * kind(b5[f])) + (w6 * kind(b6[f]) + w7 * kind(b7[f])))
    for j in range(eights, len(places)):
        w, b = weights[j], beside[places[j]]
        for f in range(LANES):
            total[f] += w * kind(b[f])
