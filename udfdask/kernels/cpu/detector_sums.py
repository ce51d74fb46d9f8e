"""Sums over the pixels of a detector, frame by frame.

The pixels are read in groups of consecutive pixels, which are whole vectors: rows of a detector
are too short for loops over vectors. Pixels of a group outside the detector are replaced by 0. Only
long runs of pixels inside the detector, such as whole frames, are read in a loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.kernels.cpu.pixel_sums import add_pixels
from udfdask.kernels.numba_internals.compile import inner_kernel, summing_kernel
from udfdask.kernels.numba_internals.reading import plus, touch, value_at
from udfdask.kernels.numba_internals.rows import MOST, as_native, rows_in_memory, wider
from udfdask.kernels.numba_internals.vector_sums import GROUP, add_group
from udfdask.kernels.overflow import is_long, require_near

LONG = 1024
"""Shortest run of pixels that is read in a loop. Loops read memory in order: detectors of all
pixels took 0.7 to 0.8 of the time of groups. But runs are read after the groups of a frame: with
runs from 64 pixels on, disks in frames of 128 x 128 pixels took 1.5 to 2 times as long."""

PIECE = 4 << 20
"""Bytes of the frames whose pixels are copied at a time, if a dtype has no kernel."""


class DetectorGroups(NamedTuple):
    """The pixels of a detector, as indices into the memory of a frame of a tile, int64.

    `starts` are the first pixels of groups, in ascending order; `mask`, bool, shape (groups,
    GROUP), tells which pixels of a group are in the detector. `runs` have first pixel and end of
    each long run of pixels, which are in no group.
    """

    starts: AnyArray
    mask: AnyArray
    runs: AnyArray


def detector_groups(mask: AnyArray, row_step: int) -> DetectorGroups | None:
    """Return the pixels of a detector, None if a frame is smaller than a group.

    `mask` is the part of the detector in a tile, bool, shape (height, width); `row_step` is the
    number of elements from one row to the next.
    """
    height, width = mask.shape
    extent = (height - 1) * row_step + width
    if extent < GROUP:
        return None
    y, x = np.nonzero(mask)
    places = y * row_step + x
    used = np.unique(places // GROUP)
    # the last group ends with the frame: after it, memory may end
    starts = np.minimum(used * GROUP, extent - GROUP)
    members = np.zeros((len(used), GROUP), bool)
    number = np.searchsorted(used, places // GROUP)
    members[number, places - starts[number]] = True
    # a group that was moved to the end of the frame is not full: others have its first pixels
    full = np.flatnonzero(members.all(axis=1))
    pieces = np.split(full, np.flatnonzero(np.diff(used[full]) > 1) + 1)
    long = [piece for piece in pieces if len(piece) * GROUP >= LONG]
    runs = [(starts[piece[0]], starts[piece[-1]] + GROUP) for piece in long]
    rest = np.setdiff1d(np.arange(len(used)), np.concatenate([*long, full[:0]]))
    return DetectorGroups(starts[rest], members[rest], np.array(runs, np.int64).reshape(-1, 2))


def sum_detector(
    tile: AnyArray, mask: AnyArray, groups_for: Callable[[int], DetectorGroups | None]
) -> AnyArray:
    """Return the sum of each frame over a detector; raise if integers do not fit 64 bits.

    `tile` has the shape (n, height, width), a real or complex dtype and either byte order; `mask`
    has the shape of a frame. `groups_for` takes a row step and returns `detector_groups` of the
    mask. Sums have 64 bits, or those of complex numbers and long doubles.
    """
    if tile.dtype.kind in "fc":
        dtype = np.result_type(tile.dtype, np.float64)
    else:
        dtype = np.zeros(0, tile.dtype).sum().dtype
    sums = np.zeros(len(tile), dtype)
    step = max(1, PIECE // max(1, tile[:1].nbytes))
    for start in range(0, len(tile) if tile.size else 0, step):
        _add_frames_of(tile[start : start + step], mask, groups_for, sums[start : start + step])
    return sums


def _add_frames_of(tile: AnyArray, mask: AnyArray, groups_for: Any, out: AnyArray) -> None:
    native, swap = as_native(tile)
    groups = None
    if native.dtype.kind != "c" and native.dtype.char != "g":
        flat, frame_step, row_step = rows_in_memory(native)
        if row_step < native.shape[2] and native.shape[1] > 1:  # rows share pixels in memory
            flat, frame_step, row_step = rows_in_memory(np.ascontiguousarray(native))
        groups = groups_for(row_step)
    if groups is None:
        add_pixels(tile[:, mask], out)
        return
    sums = np.empty(GROUP, wider(flat.dtype))
    _add_frames(flat, frame_step, swap, *groups, sums, out)
    if is_long(flat.dtype):
        approximate = np.zeros(len(out))
        _add_frames(flat, frame_step, swap, *groups, np.empty(GROUP), approximate)
        require_near(out, approximate)


@summing_kernel
def _add_frames(
    flat: Any, step: Any, swap: Any, starts: Any, mask: Any, runs: Any, sums: Any, out: Any
) -> None:
    """Add up all frames; `sums` is a buffer, whose dtype holds sums of `MOST` values.

    The next frame is touched first: what is not in memory cannot be prefetched. Without this, a
    ring over mapped frames of 64 KiB took 1.15 times as long.
    """
    for f in range(len(out)):
        if f + 1 < len(out) and len(starts):
            touch(flat, (f + 1) * step + starts[0])
        for first in range(0, len(starts), MOST):
            sums[:] = 0
            for g in range(first, min(first + MOST, len(starts))):
                add_group(flat, f * step + starts[g], step, swap, mask, g, sums)
            out[f] += _total(sums, out)
        for r in range(len(runs)):
            for first in range(runs[r, 0], runs[r, 1], MOST):
                total = sums.dtype.type(0)
                for j in range(f * step + first, f * step + min(first + MOST, runs[r, 1])):
                    total = plus(total, value_at(flat, j, swap, sums.dtype.type))
                out[f] += out.dtype.type(total)


@inner_kernel
def _total(sums: Any, out: Any) -> Any:
    kind = out.dtype.type
    total = kind(0)
    for j in range(GROUP):
        total += kind(sums[j])
    return total
