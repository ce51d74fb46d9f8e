"""Adds up sparse frames: over the frames, or over the pixels of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.kernels.cpu.compile import inner_kernel, kernel
from udfdask.kernels.cpu.exact_sums import (
    add_exactly,
    add_inside_exactly,
    scatter_exactly,
)
from udfdask.kernels.cpu.intrinsics import AHEAD, LINE, prefetch
from udfdask.kernels.cpu.sparse_entries import Entries
from udfdask.kernels.overflow import is_long, require
from udfdask.types import AnyArray

NARROW: dict[str, tuple[type[np.integer[Any]], ...]] = {
    "u": (np.uint8, np.uint16, np.uint32),
    "i": (np.int8, np.int16, np.int32),
}
"""What integers may be added up in before they go into a wider sum, by kind."""

Steps = list[tuple[type[Any], int]]
"""Dtypes to add up in, narrow before wide, and how many frames each takes."""

FULL = 0.5
"""Entries for each pixel from which it pays to add narrow sums to wider ones."""


def add_entries(entries: Entries, total: AnyArray) -> None:
    """Add all frames to `total`, shape `part`, contiguous.

    `total` is uint64, int64, float64 or complex128 as the kind of the data asks for. No pixel is
    twice in a frame, or narrow sums of integers might overflow.
    """
    flat = total.reshape(-1)
    # an eighth of the bytes is more likely in a cache: events of a detector are small numbers
    steps = _steps(entries, len(flat))
    if entries.values.dtype == flat.dtype and is_long(flat.dtype):
        _add_long(entries, steps, flat)
    else:
        _add(entries, steps, flat)


def _add_long(entries: Entries, steps: Steps, flat: AnyArray) -> None:
    """Add integers of 64 bits; raise if a sum does not fit."""
    if steps:  # few bits each: only the sums of all frames may be large
        more = np.zeros_like(flat)
        _add(entries, steps, more)
        require(add_exactly(flat, more), flat.dtype)
    else:
        require(scatter_exactly(entries.pixels, entries.values, flat), flat.dtype)


def _add(entries: Entries, steps: Steps, flat: AnyArray) -> None:
    """Add all frames, in steps if there are any."""
    if not steps:
        _scatter(entries.pixels, entries.values, flat)
        return
    (dtype, frames), *wider = steps
    narrow = np.zeros(len(flat), dtype)
    if not wider:
        _scatter_in_turns(*entries, frames, narrow, flat)
        return
    dtype, most = wider[0]
    for some in entries.cut(most):
        sums = np.zeros(len(flat), dtype)
        _scatter_in_turns(*some, frames, narrow, sums)
        flat += sums


def _steps(entries: Entries, pixels: int) -> Steps:
    """Return in what to add up first, and how many frames fit; narrow dtypes before wider ones."""
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
    """Add the pixels of each frame that lie inside to `total`, shape (frames,).

    `inside` is flat, uint8; what lies outside is not read.
    """
    if entries.values.dtype == total.dtype and is_long(total.dtype):
        require(add_inside_exactly(*entries, inside, total), total.dtype)
    elif len(entries.values):
        _gather(*entries, inside, total)


@inner_kernel
def _ask_ahead(flat: AnyArray, first: int) -> None:
    """Ask for as many bytes as `LINE` values have, some way behind the first."""
    for k in range(first, first + LINE, LINE // flat.itemsize):
        prefetch(flat, k + AHEAD // flat.itemsize)


@inner_kernel
def _add_each(pixels: AnyArray, values: AnyArray, total: AnyArray) -> None:
    """Add each value to its pixel. Slices in the loop would cost as much as the sums."""
    whole = len(values) // LINE * LINE
    for first in range(0, whole, LINE):
        _ask_ahead(pixels, first)
        _ask_ahead(values, first)
        for k in range(first, first + LINE):
            total[pixels[k]] += values[k]
    for k in range(whole, len(values)):
        total[pixels[k]] += values[k]


@kernel
def _scatter(pixels: AnyArray, values: AnyArray, total: AnyArray) -> None:
    """Add each value to its pixel."""
    _add_each(pixels, values, total)


@kernel
def _scatter_in_turns(
    starts: AnyArray,
    pixels: AnyArray,
    values: AnyArray,
    most: int,
    sums: AnyArray,
    total: AnyArray,
) -> None:
    """Add so many frames at a time to `sums`, which hold zeros, and these to `total`."""
    frames = len(starts) - 1
    for first in range(0, frames, most):
        some = slice(starts[first], starts[min(first + most, frames)])
        _add_each(pixels[some], values[some], sums)
        for p in range(len(sums)):
            total[p] += sums[p]
        sums[:] = 0


@kernel
def _gather(
    starts: AnyArray, pixels: AnyArray, values: AnyArray, inside: AnyArray, total: AnyArray
) -> None:
    """Add the values of each frame at pixels inside."""
    for f in range(len(total)):
        here, some = pixels[starts[f] : starts[f + 1]], values[starts[f] : starts[f + 1]]
        found = total[f]
        for k in range(len(some)):
            if inside[here[k]]:
                found += some[k]
        total[f] = found
