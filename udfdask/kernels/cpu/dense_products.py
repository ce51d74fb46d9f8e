"""Products of frames with dense masks.

If the pixels come from a cache, one core of an Intel processor with AVX-512 reaches 0.15 to 0.6 of
the speed of a large product of BLAS with 4 masks, 0.6 to 0.75 with 16 and 0.8 with 64. BLAS itself
reaches 0.05 to 0.15, 0.2 to 0.4 and 0.35 to 0.6, because the tile must be converted first and BLAS
then packs both factors. `asv_bench/dense_masks.py` compares both.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from udfdask.base.aligned import CACHE_LINE, aligned_empty
from udfdask.base.types import AnyArray
from udfdask.kernels.numba_internals.compile import inner_kernel, kernel
from udfdask.kernels.numba_internals.reading import prefetch
from udfdask.kernels.numba_internals.rows import as_rows, wider
from udfdask.kernels.numba_internals.vector_products import (
    FRAMES,
    MASKS,
    add_vector_products,
    sum_of_lanes,
)
from udfdask.kernels.numba_internals.vector_sums import VECTOR_BYTES


def product(first: AnyArray, second: AnyArray) -> AnyArray:
    """Return ``first @ second`` without warnings, like compiled kernels.

    Which floating-point flags BLAS leaves depends on the processor: some of its kernels fill up
    blocks with zeros, and infinity times zero is invalid even if it is part of no result.
    """
    with np.errstate(all="ignore"):
        products: AnyArray = first @ second
    return products


DEPTH = 64
"""Number of frames that share a block of masks while the second-level cache holds it."""

MOST_MASKS = 64
"""Largest number of masks in a part: their sums for `DEPTH` frames fit the second-level cache."""

BLOCK = 32
"""Number of vectors of pixels in a block: those of six frames take 12 KiB, and stay in the
first-level cache for all masks. With 64, float32 frames and 64 masks took 1.2 times as long."""

LONGEST = 512
"""Largest number of vectors of pixels whose products are added up in the dtype of the masks, which
limits rounding errors: these sums are added up in double precision."""


class _Part(NamedTuple):
    """Masks from `first` on, for pixels from `start` to `stop`; `packed` is filled with zeros."""

    start: int
    stop: int
    first: int
    masks: int
    packed: AnyArray


class PackedMasks(NamedTuple):
    """Masks in the order in which `add_dense_products` reads them.

    `block` is the number of vectors of pixels in a block; `longest` vectors are added up in the
    dtype of the masks. The last pixels, if they do not fill a vector, are a part of their own.
    """

    masks: int
    block: int
    longest: int
    parts: tuple[_Part, ...]


def pack(matrix: AnyArray, most: int | None = None) -> PackedMasks:
    """Pack masks, a matrix of shape (masks, pixels) in single or double precision.

    `most` is the largest number of products that their dtype adds up exactly: each lane of a vector
    adds up no more than that.
    """
    masks, pixels = matrix.shape
    lanes = VECTOR_BYTES // matrix.itemsize
    longest = LONGEST if most is None else max(1, min(LONGEST, most))
    block = min(BLOCK, longest)
    whole = pixels - pixels % lanes
    parts = []
    for first in range(0, masks, MOST_MASKS):
        some = min(MOST_MASKS, masks - first)
        for start, stop in ((0, whole), (whole, pixels)):
            if start < stop:
                packed = _pack_part(matrix[first : first + some, start:stop], block, lanes)
                parts.append(_Part(start, stop, first, some, packed))
    return PackedMasks(masks, block, longest - longest % block, tuple(parts))


def _pack_part(matrix: AnyArray, block: int, lanes: int) -> AnyArray:
    """Return blocks of `block` vectors of pixels; in each block, `MASKS` masks after the other."""
    masks, pixels = matrix.shape
    groups, steps = -(-masks // MASKS), -(-pixels // lanes)
    full = np.zeros((groups * MASKS, steps * lanes), matrix.dtype)
    full[:masks, :pixels] = matrix
    vectors = full.reshape(groups, MASKS, steps, lanes).transpose(0, 2, 1, 3)
    packed = aligned_empty(full.size, matrix.dtype)
    size = groups * MASKS * lanes
    for first in range(0, steps, block):
        part = vectors[:, first : first + block]
        packed[first * size : first * size + part.size] = part.reshape(-1)
    packed.flags.writeable = False  # all threads share it
    return packed


def add_dense_products(frames: AnyArray, masks: PackedMasks, out: AnyArray) -> None:
    """Add the products of frames, shape (n, pixels), with masks to `out`, shape (n, masks).

    Complex pixels and complex results are pairs of real ones for the packed masks.
    """
    n = len(frames)
    if not (n and masks.parts):
        return
    if frames.dtype.kind == "c":
        frames = np.ascontiguousarray(frames, frames.dtype.newbyteorder("="))
        frames = frames.view(frames.real.dtype)
    if wider(frames.dtype) is None:
        frames = frames.astype(np.float64)
    total = np.zeros((n, masks.masks))
    for part in masks.parts:
        lanes, full = VECTOR_BYTES // part.packed.itemsize, -(-part.masks // MASKS) * MASKS
        pixels, width = frames[:, part.start : part.stop], len(part.packed) // full
        if part.stop - part.start < width:
            pixels = np.pad(pixels, [(0, 0), (0, width - part.stop + part.start)])
        sizes = masks.block, masks.longest, part.first, part.masks
        converted = aligned_empty(FRAMES * masks.block * lanes, part.packed.dtype)
        sums = aligned_empty((DEPTH + FRAMES) * full * lanes, part.packed.dtype)
        multiply(tuple(as_rows(pixels)), part.packed, sizes, (converted, sums), total)
    if out.dtype.kind == "c":
        total = total.view(np.complex128)
    out += total.astype(out.dtype, copy=False)


@kernel
def multiply(rows: Any, packed: AnyArray, sizes: Any, buffers: Any, total: AnyArray) -> None:
    """Add the products of all rows with packed masks to `total`, shape (rows, all masks).

    The buffers are for the converted pixels of a block, and for the sums in the lanes of vectors.
    """
    flat, count, step, width, swap = rows
    block, longest, first_mask, masks = sizes
    _, sums = buffers
    lanes = VECTOR_BYTES // packed.itemsize
    steps, groups = width // lanes, -(-masks // MASKS)
    for start in range(0, count, DEPTH):
        n = min(DEPTH, count - start)
        for begin in range(0, steps, longest):
            sums[:] = 0
            for first in range(begin, min(begin + longest, steps), block):
                source = flat, n, start * step + first * lanes, step, swap
                place = first * groups * MASKS * lanes
                _multiply_block(source, packed, place, groups, min(block, steps - first), buffers)
            _add_lanes(sums, first_mask, masks, total[start : start + n])


@inner_kernel
def _multiply_block(
    source: Any, packed: AnyArray, place: int, groups: int, length: int, buffers: Any
) -> None:
    """Add the products of a block of `n` rows with all groups of masks, from `place` on."""
    flat, n, pixel, step, swap = source
    pixels, sums = buffers
    line = CACHE_LINE // packed.itemsize
    lanes = VECTOR_BYTES // packed.itemsize
    size = length * MASKS * lanes
    end = place + groups * size
    each = size // -(-n // FRAMES) + 1
    ahead = end
    at = 0
    for i in range(0, n, FRAMES):
        row, last = pixel + i * step, n - 1 - i
        after = row + length * lanes
        add_vector_products(
            flat, swap, row, step, last, after, pixels, packed, place, length, sums, at
        )
        at += FRAMES * MASKS * lanes
        for k in range(place + size, end, size):
            # each group of masks prefetches a part of the next block: at once, they would wait
            for later in range(ahead, ahead + each, line):
                prefetch(packed, later)
            ahead += each
            if last > 0:
                after += step
                last -= 1
            add_vector_products(flat, swap, None, 0, 0, after, pixels, packed, k, length, sums, at)
            at += FRAMES * MASKS * lanes


@inner_kernel
def _add_lanes(sums: AnyArray, first: int, masks: int, total: AnyArray) -> None:
    lanes = VECTOR_BYTES // sums.itemsize
    at = 0
    for i in range(0, len(total), FRAMES):
        for j in range(0, masks, MASKS):
            for f in range(i, i + FRAMES):
                for m in range(j, j + MASKS):
                    if f < len(total) and m < masks:
                        total[f, first + m] += sum_of_lanes(sums, at)
                    at += lanes
