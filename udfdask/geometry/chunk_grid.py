"""The navigation chunk grid and the ROI: the scan positions and the rows of each chunk.

A *row* is a position in flattened navigation order with the ROI applied. A chunk is identified by
its number: only chunks with at least one selected frame are counted, in C order of the grid.
"""

from __future__ import annotations

import itertools
import math
import operator
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

IntArray = np.ndarray[Any, np.dtype[np.int64]]
BoolArray = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Navigation chunks and ROI of a run: a task finds the bounds of its chunk from its number."""

    nav_chunks: tuple[tuple[int, ...], ...]
    """Dask's chunk sizes along each navigation axis, in frames."""
    roi: BoolArray | None = None
    """True for the frames that are processed, shape `nav`; None for all frames."""
    present: BoolArray | None = None
    """True for the positions that have a frame, shape `nav`; None for all. Only UDFs with a halo
    need it: absent frames are not selected, but selected ones may have them as neighbors."""

    @staticmethod
    def of(
        nav_chunks: Iterable[Iterable[int]],
        roi: BoolArray | None = None,
        present: BoolArray | None = None,
    ) -> Grid:
        """Return the grid for dask's chunk sizes along each navigation axis."""
        sizes = tuple(tuple(map(int, axis)) for axis in nav_chunks)
        return Grid(nav_chunks=sizes, roi=roi, present=present)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_unpacked, self._packed)

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return self._packed  # an axis may have 100,000 chunks

    @cached_property
    def _packed(self) -> tuple[Any, bytes | None, bytes | None]:
        """Runs (size, count) of equal chunks, and the masks: 2 kB for a disk in 1000 x 1000."""

        def packed(mask: BoolArray | None) -> bytes | None:
            return None if mask is None else zlib.compress(np.packbits(mask).tobytes(), level=1)

        runs = [[(n, len([*same])) for n, same in itertools.groupby(c)] for c in self.nav_chunks]
        return runs, packed(self.roi), packed(self.present)

    @property
    def packed_size(self) -> int:
        """Approximate serialized size in bytes."""
        runs, *masks = self._packed
        return sum(len(mask or b"") for mask in masks) + 8 * sum(map(len, runs))

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Navigation shape, in frames."""
        return tuple(map(sum, self.nav_chunks))

    @cached_property
    def size(self) -> int:
        """Number of frames, selected or not."""
        return math.prod(self.shape)

    @cached_property
    def numblocks(self) -> tuple[int, ...]:
        """Number of chunks along each navigation axis."""
        return tuple(map(len, self.nav_chunks))

    @cached_property
    def starts(self) -> tuple[list[int], ...]:
        """The first position of each chunk, along each navigation axis."""
        return tuple([*itertools.accumulate(axis[:-1], initial=0)] for axis in self.nav_chunks)

    @cached_property
    def _sizes(self) -> IntArray:
        """Number of frames in every chunk of the grid, flat."""
        sizes: Any = np.ones((), dtype=np.int64)
        for axis in self.nav_chunks:
            sizes = np.multiply.outer(sizes, np.asarray(axis, dtype=np.int64))
        return np.asarray(sizes).reshape(-1)

    @cached_property
    def _counts(self) -> IntArray:
        """Number of selected frames in every chunk of the grid, flat, chunks without any too."""
        if self.roi is None:
            return self._sizes
        counts: Any = self.roi
        for axis, axis_sizes in enumerate(self.nav_chunks):
            sizes = np.asarray(axis_sizes, dtype=np.int64)
            # skip chunks of size 0: for them, reduceat would return the next frame instead of 0
            filled = np.flatnonzero(sizes)
            sums = np.zeros((*counts.shape[:axis], len(sizes), *counts.shape[axis + 1 :]), np.int64)
            if len(filled):
                starts = (np.cumsum(sizes) - sizes)[filled]
                found = np.add.reduceat(counts, starts, axis=axis, dtype=np.int64)
                sums[(slice(None),) * axis + (filled,)] = found
            counts = sums
        return np.asarray(counts, dtype=np.int64).reshape(-1)

    @cached_property
    def selected(self) -> IntArray:
        """Flat grid index of each chunk with a selected frame, in C order."""
        return np.flatnonzero(self._counts)

    @cached_property
    def counts(self) -> IntArray:
        """Number of selected frames of each chunk in `selected`."""
        return self._counts[self.selected]

    @cached_property
    def loaded(self) -> IntArray:
        """Number of frames of each chunk in `selected`, also of those that are not selected."""
        return self._sizes[self.selected]

    @cached_property
    def _offsets(self) -> IntArray:
        """Number of selected frames before each chunk in `selected`, and the total at the end."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.counts)])

    @cached_property
    def n_chunks(self) -> int:
        """Number of chunks with a selected frame."""
        return len(self.selected)

    @cached_property
    def n_frames(self) -> int:
        """Number of selected frames."""
        return self.size if self.roi is None else int(np.count_nonzero(self.roi))

    def index(self, chunk: int) -> tuple[int, ...]:
        """Return the index of a chunk in dask's chunk grid."""
        # in Python: unravel_index takes longer for so few numbers, and graphs have many chunks
        flat, index = int(self.selected[chunk]), []
        for n in reversed(self.numblocks):
            flat, i = divmod(flat, n)
            index.append(i)
        return tuple(reversed(index))

    def _flat(self, index: Sequence[int]) -> int:
        flat = 0
        for i, n in zip(index, self.numblocks, strict=True):
            flat = flat * n + i
        return flat

    def chunk_at(self, index: Sequence[int]) -> int:
        """Return the chunk at an index of dask's chunk grid; it must hold a selected frame."""
        return int(np.searchsorted(self.selected, self._flat(index)))

    def bounds(self, chunk: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the first scan position and the navigation shape of a chunk."""
        return self.bounds_at(self.index(chunk))

    def bounds_at(self, index: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the same for a chunk at an index of dask's chunk grid, selected or not."""
        start = tuple(map(operator.getitem, self.starts, index))
        return start, tuple(map(operator.getitem, self.nav_chunks, index))

    def usable(self, in_roi: bool) -> BoolArray | None:
        """Return the frames that can be neighbors of others, shape `nav`; None for all.

        With `in_roi`, only those in the ROI, which contains no absent ones.
        """
        return self.roi if in_roi else self.present

    def has_usable(self, index: Sequence[int], in_roi: bool) -> bool:
        """Return whether the chunk at an index of dask's chunk grid has a frame of `usable`."""
        mask = self.usable(in_roi)
        if mask is None:
            return True
        return bool(mask[self.window_at(index)].any())

    def has_selected(self, index: Sequence[int]) -> bool:
        """Return whether the chunk at an index of dask's chunk grid has a selected frame."""
        return bool(self._counts[self._flat(index)])

    def selected_box(self, box: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...] | None:
        """Return the smallest part of a box of positions that has its selected ones, if any."""
        if self.roi is None:
            return box if all(first < stop for first, stop in box) else None
        chosen = self.roi[tuple(slice(*span) for span in box)]
        if not chosen.any():
            return None
        found = []
        for axis, (first, _) in enumerate(box):
            others = tuple(k for k in range(len(box)) if k != axis)
            along = np.flatnonzero(chosen.any(axis=others))
            found.append((first + int(along[0]), first + int(along[-1]) + 1))
        return tuple(found)

    def count(self, chunk: int) -> int:
        """Return the number of selected frames of a chunk."""
        return int(self.counts[chunk])

    def offset(self, chunk: int) -> int:
        """Return the number of selected frames before a chunk; `n_chunks` gives their total."""
        return int(self._offsets[chunk])

    def n_rows(self, first: int, stop: int) -> int:
        """Return the number of selected frames of the chunks `first` to `stop` (excluded)."""
        return self.offset(stop) - self.offset(first)

    def mask(self, chunk: int) -> BoolArray | None:
        """Return the ROI inside a chunk, flat; None if all frames of the chunk are selected."""
        if self.roi is None or self.counts[chunk] == math.prod(self.bounds(chunk)[1]):
            return None
        return self.roi[self.window_at(self.index(chunk))].reshape(-1)

    def window_at(self, index: Sequence[int]) -> tuple[slice, ...]:
        """Return where a chunk lies in an array of navigation shape, from its index."""
        return tuple(slice(s, s + n) for s, n in zip(*self.bounds_at(index), strict=True))

    @cached_property
    def _row_numbers(self) -> IntArray:
        """Row of every scan position, shape `nav`; only valid inside the ROI."""
        assert self.roi is not None
        return (np.cumsum(self.roi.reshape(-1)) - 1).reshape(self.shape)

    def is_contiguous(self, chunk: int) -> bool:
        """Return whether the frames of a chunk are contiguous in flattened order, without ROI."""
        _, shape = self.bounds(chunk)
        outer = True  # all axes so far have extent 1
        for n, full in zip(shape, self.shape, strict=True):
            if not outer and n != full:
                return False
            outer = outer and n == 1
        return True

    def rows(self, chunk: int) -> range | IntArray:
        """Return the rows of a chunk: a range if they are contiguous, otherwise an array."""
        if self.roi is not None:
            window = self.window_at(self.index(chunk))
            return as_range(self._row_numbers[window][self.roi[window]])
        start, shape = self.bounds(chunk)
        strides = [math.prod(self.shape[axis + 1 :]) for axis in range(len(shape))]
        first = sum(s * stride for s, stride in zip(start, strides, strict=True))
        if self.is_contiguous(chunk):
            return range(first, first + math.prod(shape))
        along_axes = (np.arange(n) * stride for n, stride in zip(shape, strides, strict=True))
        return np.asarray(first + sum(np.ix_(*along_axes)), dtype=np.int64).reshape(-1)

    def rows_of(self, first: int, stop: int) -> range | IntArray:
        """Return the rows of the chunks `first` to `stop` (excluded), chunk by chunk."""
        if math.prod(self.numblocks[1:]) == 1:
            return range(self.offset(first), self.offset(stop))
        if stop - first == 1:
            return self.rows(first)
        parts = [rows for k in range(first, stop) if len(rows := self.rows(k))]
        # NumPy would convert a range number by number
        arrays = [np.arange(p.start, p.stop) if isinstance(p, range) else p for p in parts]
        return as_range(np.concatenate([np.empty(0, dtype=np.int64), *arrays]))

    def coordinates(self, chunk: int) -> IntArray:
        """Return the scan positions of the selected frames of a chunk, shape (n, nav dims)."""
        start, shape = self.bounds(chunk)
        offsets = np.indices(shape).reshape(len(shape), math.prod(shape)).T
        coordinates = offsets + np.array(start, dtype=np.int64)
        mask = self.mask(chunk)
        return coordinates if mask is None else coordinates[mask]

    def coordinates_of(self, first: int, stop: int) -> IntArray:
        """Return the scan positions of the chunks `first` to `stop` (excluded), chunk by chunk."""
        parts = [self.coordinates(k) for k in range(first, stop)]
        return np.concatenate([np.empty((0, len(self.shape)), dtype=np.int64), *parts])

    @property
    def flat_coordinates(self) -> IntArray:
        """The scan positions of all selected frames in flattened order, shape (n, nav dims)."""
        return np.argwhere(np.ones(self.shape, dtype=bool) if self.roi is None else self.roi)


def as_index(rows: range | IntArray) -> slice | IntArray:
    """Return rows as an index into an array of all rows: a range becomes a slice."""
    return slice(rows.start, rows.stop) if isinstance(rows, range) else rows


def as_range(rows: IntArray) -> range | IntArray:
    """Return rows as a range if they are contiguous and increase."""
    n = len(rows)
    if n and rows[-1] - rows[0] == n - 1 and bool(np.all(np.diff(rows) == 1)):
        return range(int(rows[0]), int(rows[0]) + n)
    return rows if n else range(0)


def _unpacked(runs: Any, *masks: bytes | None) -> Grid:
    grid = Grid.of(itertools.chain(*itertools.starmap(itertools.repeat, axis)) for axis in runs)

    def unpacked(packed: bytes | None) -> BoolArray | None:
        if packed is None:
            return None
        bits = np.frombuffer(zlib.decompress(packed), dtype=np.uint8)
        mask = np.unpackbits(bits, count=grid.size).astype(bool).reshape(grid.shape)
        mask.flags.writeable = False
        return mask

    roi, present = map(unpacked, masks)
    return replace(grid, roi=roi, present=present)
