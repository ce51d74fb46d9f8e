"""Sum sparse frames: over the frames, or over pixels inside a region of each frame."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.kernels.cpu.compile import inner_kernel, kernel
from udfdask.kernels.cpu.exact_sums import add_inside_exactly, scatter_exactly
from udfdask.kernels.cpu.intrinsics import CACHE_LINE, PREFETCH_DISTANCE, prefetch
from udfdask.kernels.cpu.sparse_entries import Entries
from udfdask.kernels.overflow import add_exactly, is_long, require
from udfdask.types import AnyArray

NARROW: dict[str, tuple[type[np.integer[Any]], ...]] = {
    "u": (np.uint8, np.uint16, np.uint32),
    "i": (np.int8, np.int16, np.int32),
}
"""Narrow dtypes for intermediate sums of integers, by kind."""

Steps = list[tuple[type[Any], int]]
"""Dtypes of intermediate sums, narrow before wide, each with the number of frames that fit."""

FULL = 0.5
"""Smallest number of entries per pixel for an intermediate sum, which costs an addition for each
pixel."""


def add_entries(entries: Entries, total: AnyArray) -> None:
    """Add all frames to `total`, shape `part`, contiguous.

    `total` is uint64, int64, float64 or complex128, according to the kind of the data. No pixel may
    be stored twice in a frame, because narrow sums of integers could overflow.
    """
    flat = total.reshape(-1)
    # detector events are small integers: sums in 8 bits take an eighth of the memory of 64 bits,
    # and are more likely to stay in a cache
    steps = _steps(entries, len(flat))
    if entries.values.dtype == flat.dtype and is_long(flat.dtype):
        _add_long(entries, steps, flat)
    else:
        _add(entries, steps, flat)


def _add_long(entries: Entries, steps: Steps, flat: AnyArray) -> None:
    """Add 64-bit integers; raise if a sum overflows."""
    if steps:  # the values are small: only the addition to `flat` can overflow
        more = np.zeros_like(flat)
        _add(entries, steps, more)
        add_exactly(flat, more)
    else:
        require(scatter_exactly(entries.pixels, entries.values, flat), flat.dtype)


def _add(entries: Entries, steps: Steps, flat: AnyArray) -> None:
    """Add all frames, with intermediate sums if there are steps."""
    if not steps:
        _scatter(entries.pixels, entries.values, flat)
        return
    (dtype, frames), *wider = steps
    narrow = np.zeros(len(flat), dtype)
    if not wider:
        _scatter_in_groups(*entries, frames, narrow, flat)
        return
    dtype, most = wider[0]
    for group in entries.cut(most):
        sums = np.zeros(len(flat), dtype)
        _scatter_in_groups(*group, frames, narrow, sums)
        flat += sums


def _steps(entries: Entries, pixels: int) -> Steps:
    """Return the dtypes of intermediate sums, narrow before wide, and how many frames fit each."""
    count, values = len(entries.values), entries.values
    if not count or count < FULL * pixels or values.dtype.kind not in NARROW:
        return []
    largest = max(1, int(values.max()), -int(values.min()) if values.dtype.kind == "i" else 0)
    steps: Steps = []
    for dtype in NARROW[values.dtype.kind]:
        frames = min(entries.frames, np.iinfo(dtype).max // largest)
        if frames * count >= FULL * pixels * entries.frames:
            steps.append((dtype, frames))
            if frames == entries.frames:
                break
    return steps


def add_entries_inside(entries: Entries, inside: AnyArray, total: AnyArray) -> None:
    """Add the pixels of each frame where `inside`, flat, uint8, is 1 to `total`, shape (frames,).

    Values outside are not read.
    """
    if entries.values.dtype == total.dtype and is_long(total.dtype):
        require(add_inside_exactly(*entries, inside, total), total.dtype)
    elif len(entries.values):
        _gather(*entries, inside, total)


@inner_kernel
def _prefetch_ahead(flat: AnyArray, first: int) -> None:
    """Prefetch `CACHE_LINE` values, `PREFETCH_DISTANCE` bytes ahead of index `first`."""
    for k in range(first, first + CACHE_LINE, CACHE_LINE // flat.itemsize):
        prefetch(flat, k + PREFETCH_DISTANCE // flat.itemsize)


@kernel
def _scatter(pixels: AnyArray, values: AnyArray, total: AnyArray) -> None:
    """Add each value to its pixel."""
    # indices and not slices: slices in the loop would take as long as the sums
    end = len(values) // CACHE_LINE * CACHE_LINE
    for first in range(0, end, CACHE_LINE):
        _prefetch_ahead(pixels, first)
        _prefetch_ahead(values, first)
        for k in range(first, first + CACHE_LINE):
            total[pixels[k]] += values[k]
    for k in range(end, len(values)):
        total[pixels[k]] += values[k]


@kernel
def _scatter_in_groups(
    starts: AnyArray,
    pixels: AnyArray,
    values: AnyArray,
    most: int,
    sums: AnyArray,
    total: AnyArray,
) -> None:
    """Add `most` frames at a time to `sums`, which must be 0 at first, and these to `total`."""
    frames = len(starts) - 1
    for first in range(0, frames, most):
        group = slice(starts[first], starts[min(first + most, frames)])
        _scatter(pixels[group], values[group], sums)
        for p in range(len(sums)):
            total[p] += sums[p]
        sums[:] = 0


@kernel
def _gather(
    starts: AnyArray, pixels: AnyArray, values: AnyArray, inside: AnyArray, total: AnyArray
) -> None:
    """Add the values of each frame at the pixels inside."""
    for f in range(len(total)):
        own_pixels, own = pixels[starts[f] : starts[f + 1]], values[starts[f] : starts[f + 1]]
        frame_sum = total[f]
        for k in range(len(own)):
            if inside[own_pixels[k]]:
                frame_sum += own[k]
        total[f] = frame_sum
