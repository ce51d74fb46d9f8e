"""Shift the frames of a tile, or the entries of sparse ones: from where, and how."""

from __future__ import annotations

import itertools
import math
import sys
from typing import Any, NamedTuple

import numpy as np

from udfdask.backends.backend import DenseBackend, locked
from udfdask.base.aligned import aligned_empty
from udfdask.base.types import AnyArray
from udfdask.corrections.correct_tile import as_lines
from udfdask.errors import UDFError
from udfdask.geometry.slices import Slice
from udfdask.kernels.overflow import compiled_dtype


class ReusedMemory:
    """Memory for the tiles of a task, used again if nobody holds the tile before.

    For tiles of a few MiB, getting new pages from the system takes as long as copying the pixels.
    A UDF may keep a tile: then the next tile gets new memory, so that the kept one does not change.
    """

    def __init__(self) -> None:
        self._owners: dict[np.dtype[Any], AnyArray] = {}

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> AnyArray:
        """Return an array, C-ordered, with any values.

        There is memory for one array of each dtype: UDFs may want a tile in different ones.
        """
        size = math.prod(shape) * dtype.itemsize
        owner = self._owners.get(dtype)
        if owner is None or owner.size < size or sys.getrefcount(owner.base) > _UNUSED:
            self._owners.pop(dtype, None)
            owner = None  # the old memory is free before new memory is taken
            owner = self._owners[dtype] = aligned_empty(size, np.uint8)
        return owner[:size].view(dtype).reshape(shape)


_unused = aligned_empty(0, np.uint8)
_UNUSED = sys.getrefcount(_unused.base)
"""The number of references to memory that nobody uses: that of the one view that owns it."""


class TileShifts(NamedTuple):
    """How a tile is made from a window of the frames around it.

    `first` is where the first pixel of the tile is in the window, int64, shape (frames, sig dims).
    It can be outside of the window, where all pixels have the value `fill`. `parts` of a pixel are
    added, float64, 0 <= part < 1; they are None for whole pixels. `shape` is that of the tile in
    the signal.
    """

    first: AnyArray
    parts: AnyArray | None
    shape: tuple[int, ...]
    fill: Any

    def of_rows(self, start: int, stop: int) -> TileShifts:
        """Return the same for some frames of the tile."""
        parts = None if self.parts is None else self.parts[start:stop]
        return self._replace(first=self.first[start:stop], parts=parts)


class FrameShifts:
    """The shifts of the selected frames of a chunk in pixels, shape (frames, sig dims).

    A frame whose shift contains NaN becomes empty. `subpixel` and `fill` are those of `Descan`.
    """

    def __init__(
        self, shifts: AnyArray, sig: tuple[int, ...], *, subpixel: bool, fill: Any
    ) -> None:
        values = np.asarray(shifts, dtype=np.float64)
        if np.isinf(values).any():
            raise UDFError("descan has an infinite shift: make it NaN, or leave the frame out")
        # No pixel of the frame is left after a shift by `most`; larger ones would not fit int64.
        most = np.array(sig, dtype=np.float64) + 1
        values = np.clip(values, -most, most)
        values[np.isnan(values).any(axis=1)] = most
        whole = np.floor(values) if subpixel else np.rint(values)
        self._parts = values - whole if subpixel else None
        if self._parts is not None:
            # 1 in single precision: the weight of the other pixel, which can be NaN, is 0
            carried = self._parts.astype(np.float32) == 1
            whole[carried] += 1
            self._parts[carried] = 0
        self.interpolates = subpixel
        # shifts by whole pixels, shape (frames, sig dims)
        self.whole = whole.astype(np.int64)
        self._sig = np.array(sig, dtype=np.int64)
        self._fill = fill
        # One window for all tiles of a part: it can be larger than a tile needs, which costs
        # little, and takes no time for each tile. Empty frames need no window.
        beyond = (self.whole >= self._sig) | (self.whole + subpixel <= -self._sig)
        seen = ~beyond.any(axis=1)
        some = self.whole[seen] if seen.any() else np.zeros((1, len(sig)), dtype=np.int64)
        self._least, self._most = some.min(axis=0), some.max(axis=0) + subpixel

    def of_part(
        self, part: Slice, *, whole_window: bool = False
    ) -> tuple[tuple[slice, ...], TileShifts]:
        """Return the window of the frames that a part is made from, and how it is made.

        The tile is the signal part `part` of all shifted frames. The window is the same for all of
        them, and lies in the frame. With `whole_window`, it is the full frame.
        """
        shape, origin = tuple(part.shape), np.array(part.origin, dtype=np.int64)
        low, high = np.zeros_like(self._sig), self._sig
        if not whole_window:
            low = np.clip(origin + self._least, 0, self._sig)
            high = np.clip(origin + shape + self._most, low, self._sig)
        window = tuple(slice(a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True))
        first = self.whole + (origin - low)
        return window, TileShifts(first=first, parts=self._parts, shape=shape, fill=self._fill)


COPIED = {1: "u1", 2: "u2", 4: "u4", 8: "u8", 16: "c16"}
"""The dtypes as which values of some bytes are copied: few kernels for all dtypes."""


def shift_tile(
    window: Any,
    shifts: TileShifts,
    dtype: np.dtype[Any],
    backend: DenseBackend,
    memory: ReusedMemory,
) -> Any:
    """Return a tile, C-ordered, of shape (frames, *shifts.shape), if possible in `memory`.

    `window` has the frames, of shape (frames, *window of sig), in `backend`. If `shifts` has parts
    of a pixel, `dtype` is that of the tile. If not, the tile has the dtype of the window, which
    must be `dtype`.
    """
    sizes = (len(shifts.first), *shifts.shape)
    if not math.prod(sizes) or 0 in window.shape:
        return backend.namespace().full(sizes, shifts.fill, dtype=dtype)
    known = window.dtype.itemsize in COPIED or shifts.parts is not None
    if not backend.on_device and window.ndim <= 3 and known:
        plane = window if window.ndim == 3 else window[:, np.newaxis]
        moved = _copied if shifts.parts is None else _interpolated
        return moved(plane, shifts, dtype, memory).reshape(sizes)
    # frame by frame: a kernel with an index for each pixel would need four times the memory
    out = backend.namespace().full(sizes, shifts.fill, dtype=dtype)
    frames = window.astype(dtype, copy=False)
    for i, first in enumerate(shifts.first.tolist()):
        if shifts.parts is None:
            _copy_inside(frames[i], first, out[i])
        else:
            _interpolate(frames[i], first, shifts.parts[i].tolist(), out[i], shifts.fill)
    return out


def _in_planes(values: AnyArray) -> AnyArray:
    """Return a value for each frame and signal axis, shape (frames, 2), with 0 for a missing y."""
    return np.ascontiguousarray(np.pad(values, [(0, 0), (2 - values.shape[1], 0)]))


def _copied(
    window: AnyArray, shifts: TileShifts, dtype: np.dtype[Any], memory: ReusedMemory
) -> AnyArray:
    """Return a tile of images that are shifted by whole pixels."""
    from udfdask.kernels.cpu.change_frames import copy_shifted  # loads numba

    kind = np.dtype(COPIED[dtype.itemsize])
    flat, frame_step, line_step = _lines(window)
    out = memory.array((len(window), *shifts.shape), dtype)
    fill = np.array([shifts.fill], dtype=dtype)
    copy_shifted(
        (flat.view(kind), frame_step, line_step, *window.shape[1:], 1),
        _in_planes(shifts.first),
        fill.view(kind),
        out.view(kind).reshape((len(window), -1, shifts.shape[-1])),
    )
    return out


def _interpolated(
    window: AnyArray, shifts: TileShifts, dtype: np.dtype[Any], memory: ReusedMemory
) -> AnyArray:
    """Return a tile of images that are shifted by parts of a pixel."""
    from udfdask.kernels.cpu.change_frames import interpolate_shifted  # loads numba

    assert shifts.parts is not None
    compiled = compiled_dtype(dtype)
    given = window.astype(compiled_dtype(window.dtype), copy=False)
    # all combinations of real and complex dtypes would be many kernels
    step = 2 if compiled.kind == "c" else 1
    if step == 2:
        given = given.astype(np.result_type(given.dtype, np.complex64), copy=False)
    flat, frame_step, line_step = _lines(given)
    height, width = window.shape[1:]
    out = memory.array((len(window), *shifts.shape), compiled)
    fill = np.array([shifts.fill], dtype=compiled)
    real = out.real.dtype
    numbers = out.view(real).reshape((len(window), -1, step * shifts.shape[-1]))
    interpolate_shifted(
        (flat.view(flat.real.dtype), step * frame_step, step * line_step, height, step * width),
        _in_planes(shifts.first),
        _in_planes(shifts.parts),
        fill.view(real),
        np.empty(numbers.shape[-1] + step, dtype=real),
        numbers,
    )
    return out.astype(dtype, copy=False)


def _lines(window: AnyArray) -> tuple[AnyArray, int, int]:
    """Return images as flat memory, with the steps from frame to frame and from line to line.

    The memory is read-only: compiled code only exists for such arrays.
    """
    if not window.flags.aligned:
        window = window.copy()
    flat, frame_step, line_step, line = as_lines(window)
    width = window.shape[-1]
    return flat, frame_step, line_step if line == width else width


def _copy_inside(frame: Any, first: list[int], target: Any) -> None:
    """Copy the pixels of a window of a frame that lie in the frame; `first` is its first pixel."""
    sizes = list(zip(first, frame.shape, target.shape, strict=True))
    here = [(max(0, -at), min(w, n - at)) for at, n, w in sizes]
    if all(a < b for a, b in here):
        source = tuple(slice(at + a, at + b) for at, (a, b) in zip(first, here, strict=True))
        target[tuple(slice(a, b) for a, b in here)] = frame[source]


def _interpolate(frame: Any, first: list[int], parts: list[float], target: Any, fill: Any) -> None:
    """Write a window of a frame that starts between pixels: the weighted mean of its neighbors."""
    total = 0
    real = np.zeros(1, dtype=target.dtype).real.dtype
    for corner in itertools.product((0, 1), repeat=len(first)):
        weight = math.prod(p if c else 1 - p for c, p in zip(corner, parts, strict=True))
        if weight == 0:
            continue  # such a pixel can be NaN or infinite
        there = target.copy()
        there[...] = fill
        _copy_inside(frame, [at + c for at, c in zip(first, corner, strict=True)], there)
        total = total + there * real.type(weight)
    target[...] = total


def moved_entries(
    values: AnyArray, pixels: AnyArray, starts: AnyArray, first: AnyArray, sig: tuple[int, ...]
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return values, pixels and starts of shifted frames, given as those of a CSR matrix.

    `first` is where the first pixel of each shifted frame is in its frame, (frames, sig dims).
    Entries that leave the frame are dropped.
    """
    from udfdask.kernels.cpu import change_frames  # loads numba
    from udfdask.kernels.cpu.sparse_sums import Entries

    copied: Any = values.view(COPIED[values.dtype.itemsize])
    given = (starts.astype(np.int64, copy=False), pixels, copied)
    entries = Entries(*(locked(np.ascontiguousarray(each)) for each in given))
    moved = change_frames.moved_entries(entries, first, (0,) * len(sig), sig, sig)
    return moved.values.view(values.dtype), moved.pixels, moved.starts.astype(starts.dtype)
