"""Read a window of frames in memory, such as a part of the scan with its neighbors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from udfdask.kernels.cpu.rows import as_readable
from udfdask.types import AnyArray


class NeighborFrames(NamedTuple):
    """Frames as flat memory: frame i is ``flat[starts[i] : starts[i] + width]``.

    Frames are counted in C order of the window, so that a neighbor has the same distance from each
    position.
    """

    flat: AnyArray
    """All memory from the first to the last value, read-only."""
    starts: AnyArray
    """Index of the first value of each frame, int64."""
    width: int
    """Values in a frame."""
    swap: bool | int | None
    """What kernels do to each value, see `udfdask.kernels.cpu.rows.swapped`."""


def frames_of(frames: AnyArray, nav_dims: int) -> NeighborFrames:
    """Return a window of shape (*nav, *sig), not empty, as flat memory.

    Complex numbers become pairs of real numbers, bool becomes uint8. The window is only copied if
    the pixels of a frame are not contiguous, or if no kernel can read its dtype.
    """
    native, swap = as_readable(frames)
    if native.dtype == np.bool_:
        native = native.view(np.uint8)
    elif native.dtype == np.float16 or native.dtype.char in "gG":
        native = native.astype(np.complex128 if native.dtype.kind == "c" else np.float64)
    size, steps = native.itemsize, native.strides[:nav_dims]
    in_place = native.flags.aligned and native[(0,) * nav_dims].flags.c_contiguous
    if not in_place or any(step < 0 or step % size for step in steps):
        native = np.ascontiguousarray(native)
    flat, starts, width = _flat(native, nav_dims, writeable=False)
    return NeighborFrames(flat, starts, width, swap)


def results_of(out: AnyArray, nav_dims: int) -> tuple[AnyArray, AnyArray]:
    """Return results of shape (*nav, *sig), not empty, as writable flat memory, and its starts.

    The values of a position are contiguous. Complex numbers become pairs of real numbers.
    """
    flat, starts, _ = _flat(out, nav_dims, writeable=True)
    return flat, starts


def _flat(array: AnyArray, nav_dims: int, writeable: bool) -> tuple[AnyArray, AnyArray, int]:
    """Return the memory of contiguous frames, the start of each of them, and their length."""
    size = array.itemsize
    starts: AnyArray = np.zeros((), np.int64)
    for n, step in zip(array.shape[:nav_dims], array.strides[:nav_dims], strict=True):
        starts = np.add.outer(starts, np.arange(n) * (step // size))
    starts = starts.reshape(-1)
    width = array.size // starts.size
    flat = as_strided(array, (int(starts[-1]) + width,), (size,), writeable=writeable)
    if flat.dtype.kind == "c":
        return flat.view(flat.real.dtype), 2 * starts, 2 * width
    return flat, starts, width


class Neighborhood(NamedTuple):
    """Where positions and their neighbors are among the frames of a window, in C order."""

    places: AnyArray
    """Index of each position to compute, int64."""
    active: AnyArray
    """Which of all frames are at such a position and selected, bool."""
    exists: AnyArray
    """Which of all frames exist, bool."""

    @classmethod
    def of(cls, core: Any, core_mask: AnyArray, neighbor_mask: AnyArray) -> Neighborhood:
        """Return the positions for `core`, `core_mask` and `neighbor_mask` of `UDF.meta`."""
        shape = neighbor_mask.shape
        active = np.zeros(shape, dtype=bool)
        active[core] = core_mask
        places = np.arange(active.size).reshape(shape)[core].reshape(-1)
        return cls(places, active.reshape(-1), neighbor_mask.reshape(-1))


def distances(offsets: AnyArray, shape: tuple[int, ...]) -> AnyArray:
    """Return how many frames after a position its neighbors come, int64, shape (neighbors,).

    `offsets` has the shape (neighbors, nav dims); `shape` is the number of frames of the window
    along each axis.
    """
    steps = np.cumprod((1, *shape[:0:-1]))[::-1][: len(shape)]
    return (np.asarray(offsets) @ steps).astype(np.int64)
