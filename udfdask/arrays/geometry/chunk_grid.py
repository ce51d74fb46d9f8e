"""The navigation chunk grid with the ROI: which scan positions a chunk holds, and in which rows.

A *row* is a position in flattened navigation order with the ROI applied. A chunk is named by its
place among the chunks that hold at least one selected frame, counted in C order of the grid.
"""

from __future__ import annotations

import bisect
import itertools
import math
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

IntArray = np.ndarray[Any, np.dtype[np.int64]]
BoolArray = np.ndarray[Any, np.dtype[np.bool_]]
Runs = tuple[tuple[int, int], ...]


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Navigation chunks and ROI of a run; what it pickles to does not grow with equal chunks."""

    runs: tuple[Runs, ...]
    """Chunk sizes in frames along each navigation axis, as (size, count) of neighbors of one size.

    Most axes have one or two of them, whatever the number of chunks.
    """
    roi: BoolArray | None = None
    """Which frames are processed, shape `nav`; None for all."""

    @staticmethod
    def of(nav_chunks: Iterable[Sequence[int]], roi: BoolArray | None = None) -> Grid:
        """Return the grid of chunk sizes along each navigation axis, as dask has them."""
        runs = tuple(
            tuple((size, len(list(some))) for size, some in itertools.groupby(map(int, sizes)))
            for sizes in nav_chunks
        )
        return Grid(runs=runs, roi=roi)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_unpack_grid, (self.runs, self._packed_roi))

    @cached_property
    def _packed_roi(self) -> bytes | None:
        """The ROI, one bit a frame and compressed: a disk in 1000 x 1000 frames takes 2 kB."""
        return None if self.roi is None else zlib.compress(np.packbits(self.roi).tobytes(), level=1)

    @property
    def packed_size(self) -> int:
        """About what the grid pickles to, in bytes."""
        roi = 0 if self._packed_roi is None else len(self._packed_roi)
        return roi + 8 * sum(map(len, self.runs))

    @cached_property
    def nav_chunks(self) -> tuple[tuple[int, ...], ...]:
        """Chunk sizes along each navigation axis, as dask has them, in frames."""
        return tuple(
            tuple(itertools.chain.from_iterable(itertools.repeat(*run) for run in runs))
            for runs in self.runs
        )

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Navigation shape, in frames."""
        return tuple(sum(size * count for size, count in runs) for runs in self.runs)

    @cached_property
    def size(self) -> int:
        """Number of frames, selected or not."""
        return math.prod(self.shape)

    @cached_property
    def numblocks(self) -> tuple[int, ...]:
        """Number of chunks along each navigation axis."""
        return tuple(sum(count for _, count in runs) for runs in self.runs)

    @cached_property
    def _firsts(self) -> tuple[tuple[list[int], list[int]], ...]:
        """Number and position of the first chunk of each run, along each navigation axis."""
        return tuple(
            (
                list(itertools.accumulate((count for _, count in runs), initial=0))[:-1],
                list(itertools.accumulate((s * count for s, count in runs), initial=0))[:-1],
            )
            for runs in self.runs
        )

    @cached_property
    def _counts(self) -> IntArray:
        """Number of selected frames in every chunk of the grid, flat."""
        lengths = [np.asarray(sizes, dtype=np.int64) for sizes in self.nav_chunks]
        counts: Any = np.ones((), dtype=np.int64) if self.roi is None else self.roi
        for axis, sizes in enumerate(lengths):
            if self.roi is None:
                counts = np.multiply.outer(counts, sizes)
                continue
            filled = np.flatnonzero(sizes)  # for an empty chunk, reduceat gives the next frame
            sums = np.zeros((*counts.shape[:axis], len(sizes), *counts.shape[axis + 1 :]), np.int64)
            if len(filled):
                starts = (np.cumsum(sizes) - sizes)[filled]
                found = np.add.reduceat(counts, starts, axis=axis, dtype=np.int64)
                sums[(slice(None),) * axis + (filled,)] = found
            counts = sums
        flat: IntArray = counts.astype(np.int64).reshape(-1)
        return flat

    @cached_property
    def _plain(self) -> bool:
        """Whether all frames are selected, and no chunk is empty: numbers follow from sizes."""
        return self.roi is None and all(size > 0 for runs in self.runs for size, _ in runs)

    @cached_property
    def selected(self) -> IntArray:
        """Flat grid numbers of the chunks that hold a selected frame, in C order."""
        return np.flatnonzero(self._counts)

    @cached_property
    def counts(self) -> IntArray:
        """Number of selected frames of each such chunk."""
        return self._counts[self.selected]

    @cached_property
    def _offsets(self) -> IntArray:
        """Number of selected frames in all such chunks before each, and in all at the end."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.counts)])

    @cached_property
    def n_chunks(self) -> int:
        """Number of chunks that hold a selected frame."""
        return math.prod(self.numblocks) if self._plain else len(self.selected)

    @cached_property
    def n_frames(self) -> int:
        """Number of selected frames."""
        return self.size if self.roi is None else int(np.count_nonzero(self.roi))

    def index(self, chunk: int) -> tuple[int, ...]:
        """Return the place in dask's chunk grid of a chunk."""
        number, place = chunk if self._plain else int(self.selected[chunk]), []
        for n in reversed(self.numblocks):
            number, i = divmod(number, n)
            place.append(i)
        return tuple(reversed(place))

    def chunk_at(self, index: Sequence[int]) -> int:
        """Return the chunk at a place in dask's chunk grid; it must hold a selected frame."""
        number = 0
        for i, n in zip(index, self.numblocks, strict=True):
            number = number * n + i
        return number if self._plain else int(np.searchsorted(self.selected, number))

    def bounds(self, chunk: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the first scan position and the navigation shape of a chunk."""
        start, shape = [], []
        for i, runs, firsts in zip(self.index(chunk), self.runs, self._firsts, strict=True):
            numbers, positions = firsts
            run = bisect.bisect_right(numbers, i) - 1
            size = runs[run][0]
            start.append(positions[run] + (i - numbers[run]) * size)
            shape.append(size)
        return tuple(start), tuple(shape)

    def count(self, chunk: int) -> int:
        """Return the number of selected frames of a chunk."""
        return math.prod(self.bounds(chunk)[1]) if self._plain else int(self.counts[chunk])

    def offset(self, chunk: int) -> int:
        """Return the number of selected frames in all chunks before one, or before the end."""
        if not self._plain:
            return int(self._offsets[chunk])
        if chunk == self.n_chunks:
            return self.size
        start, shape = self.bounds(chunk)
        # along each axis the chunks that come before, in the same place along the axes before it
        return sum(
            math.prod(shape[:axis]) * first * math.prod(self.shape[axis + 1 :])
            for axis, first in enumerate(start)
        )

    def n_rows(self, first: int, stop: int) -> int:
        """Return the number of selected frames of the chunks `first` to `stop`."""
        if stop - first == 1:
            return self.count(first)
        return self.offset(stop) - self.offset(first)

    def mask(self, chunk: int) -> BoolArray | None:
        """Return the ROI inside a chunk, flat; None where all its frames are selected."""
        if self.roi is None:
            return None
        start, shape = self.bounds(chunk)
        if self.counts[chunk] == math.prod(shape):
            return None
        window = tuple(slice(a, a + n) for a, n in zip(start, shape, strict=True))
        return self.roi[window].reshape(-1)

    @cached_property
    def _row_numbers(self) -> IntArray:
        """Row of every scan position, shape `nav`; meaningless outside the ROI."""
        assert self.roi is not None
        return (np.cumsum(self.roi.reshape(-1)) - 1).reshape(self.shape)

    def is_contiguous(self, chunk: int) -> bool:
        """Return whether the frames of a whole chunk are neighbours in flattened order."""
        _, shape = self.bounds(chunk)
        outer = True
        for n, full in zip(shape, self.shape, strict=True):
            if not outer and n != full:
                return False
            outer = outer and n == 1
        return True

    def rows(self, chunk: int) -> range | IntArray:
        """Return the rows of a chunk: a range where they are neighbours, else an array."""
        start, shape = self.bounds(chunk)
        n = self.count(chunk)
        if self.roi is None:
            first = 0
            for s, full in zip(start, self.shape, strict=True):
                first = first * full + s
            if self.is_contiguous(chunk):
                return range(first, first + n)
            strides = [math.prod(self.shape[k + 1 :]) for k in range(len(shape))]
            rows = np.int64(first) + sum(
                np.ix_(*(np.arange(m) * step for m, step in zip(shape, strides, strict=True)))
            )
            return np.asarray(rows, dtype=np.int64).reshape(-1)
        window = tuple(slice(a, a + m) for a, m in zip(start, shape, strict=True))
        rows = self._row_numbers[window][self.roi[window]]
        if n and rows[-1] - rows[0] == n - 1:
            return range(int(rows[0]), int(rows[0]) + n)
        return rows

    def rows_of(self, first: int, stop: int) -> range | IntArray:
        """Return the rows of the chunks `first` to `stop`, in the order of the chunks."""
        if stop - first == 1:
            return self.rows(first)
        parts = [rows for k in range(first, stop) if len(rows := self.rows(k))]
        # an array of a range would be made number by number
        joined = [np.arange(p.start, p.stop) if isinstance(p, range) else p for p in parts]
        return as_range(np.concatenate([np.empty(0, dtype=np.int64), *joined]))

    def coordinates(self, chunk: int) -> IntArray:
        """Return the scan positions of the selected frames of a chunk, shape (n, nav dims)."""
        start, shape = self.bounds(chunk)
        here = np.indices(shape).reshape(len(shape), math.prod(shape)).T + np.array(
            start, dtype=np.int64
        )
        mask = self.mask(chunk)
        return here if mask is None else here[mask]

    def coordinates_of(self, first: int, stop: int) -> IntArray:
        """Return the scan positions of the chunks `first` to `stop`, in the order of the chunks."""
        parts = [self.coordinates(k) for k in range(first, stop)]
        return np.concatenate([np.empty((0, len(self.shape)), dtype=np.int64), *parts])

    @property
    def flat_coordinates(self) -> IntArray:
        """The scan positions of all selected frames in flattened order, shape (n, nav dims)."""
        every = np.indices(self.shape).reshape(len(self.shape), self.size).T
        return every if self.roi is None else every[self.roi.reshape(-1)]


def as_index(rows: range | IntArray) -> slice | IntArray:
    """Return rows as an index into an array of all rows."""
    return slice(rows.start, rows.stop) if isinstance(rows, range) else rows


def as_range(rows: IntArray) -> range | IntArray:
    """Return rows as a range if they are neighbours in rising order."""
    n = len(rows)
    if n and rows[-1] - rows[0] == n - 1 and bool(np.all(np.diff(rows) == 1)):
        return range(int(rows[0]), int(rows[0]) + n)
    return rows if n else range(0)


def _unpack_grid(runs: tuple[Runs, ...], packed: bytes | None) -> Grid:
    """Return the grid whose ROI was packed."""
    grid = Grid(runs=runs)
    if packed is None:
        return grid
    bits = np.frombuffer(zlib.decompress(packed), dtype=np.uint8)
    roi = np.unpackbits(bits, count=grid.size).astype(bool).reshape(grid.shape)
    roi.flags.writeable = False
    return Grid(runs=runs, roi=roi)
