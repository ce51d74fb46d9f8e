"""The navigation chunk grid with the ROI: which scan positions a chunk holds, and in which rows.

A *row* is a position in flattened navigation order with the ROI applied. A chunk is named by its
place among the chunks that hold at least one selected frame, counted in C order of the grid.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

IntArray = np.ndarray[Any, np.dtype[np.int64]]
BoolArray = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Navigation chunks and ROI of a run."""

    nav_chunks: tuple[tuple[int, ...], ...]
    """Chunk sizes along each navigation axis, as dask has them, in frames."""
    roi: BoolArray | None = None
    """Which frames are processed, shape `nav`; None for all."""

    def __reduce__(self) -> tuple[Any, ...]:
        packed = None if self.roi is None else np.packbits(self.roi).tobytes()
        return (_unpack_grid, (self.nav_chunks, packed))

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Navigation shape, in frames."""
        return tuple(sum(c) for c in self.nav_chunks)

    @cached_property
    def size(self) -> int:
        """Number of frames, selected or not."""
        return math.prod(self.shape)

    @cached_property
    def numblocks(self) -> tuple[int, ...]:
        """Number of chunks along each navigation axis."""
        return tuple(len(c) for c in self.nav_chunks)

    @cached_property
    def starts(self) -> tuple[tuple[int, ...], ...]:
        """First position of each chunk along each navigation axis."""
        return tuple(
            tuple(itertools.accumulate(c, initial=0))[:-1] if c else () for c in self.nav_chunks
        )

    @cached_property
    def _counts(self) -> IntArray:
        """Number of selected frames in every chunk of the grid, flat."""
        if self.roi is None:
            counts = np.ones((), dtype=np.int64)
            for sizes in self.nav_chunks:
                counts = np.multiply.outer(counts, np.asarray(sizes, dtype=np.int64))
        else:
            counts = self.roi.astype(np.int64)
            for axis, (start, sizes) in enumerate(zip(self.starts, self.nav_chunks, strict=True)):
                total = np.insert(np.cumsum(counts, axis=axis), 0, 0, axis=axis)
                stop = np.add(start, sizes)
                counts = np.take(total, stop, axis=axis) - np.take(total, start, axis=axis)
        return counts.reshape(-1)

    @cached_property
    def selected(self) -> IntArray:
        """Flat grid numbers of the chunks that hold a selected frame, in C order."""
        return np.flatnonzero(self._counts)

    @cached_property
    def _all_selected(self) -> bool:
        """Whether every chunk of the grid holds a selected frame."""
        return len(self.selected) == len(self._counts)

    @cached_property
    def counts(self) -> IntArray:
        """Number of selected frames of each such chunk."""
        return self._counts[self.selected]

    @cached_property
    def offsets(self) -> IntArray:
        """Number of selected frames in all such chunks before each, and in all at the end."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.counts)])

    @property
    def n_chunks(self) -> int:
        """Number of chunks that hold a selected frame."""
        return len(self.selected)

    @cached_property
    def n_frames(self) -> int:
        """Number of selected frames."""
        return int(self.offsets[-1])

    def index(self, chunk: int) -> tuple[int, ...]:
        """Return the place in dask's chunk grid of a chunk."""
        number, place = chunk if self._all_selected else int(self.selected[chunk]), []
        for n in reversed(self.numblocks):
            number, i = divmod(number, n)
            place.append(i)
        return tuple(reversed(place))

    def bounds(self, chunk: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the first scan position and the navigation shape of a chunk."""
        index = self.index(chunk)
        start = tuple([s[i] for s, i in zip(self.starts, index, strict=True)])
        return start, tuple([c[i] for c, i in zip(self.nav_chunks, index, strict=True)])

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
        n = int(self.counts[chunk])
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


def _unpack_grid(nav_chunks: tuple[tuple[int, ...], ...], packed: bytes | None) -> Grid:
    """Return the grid whose ROI was packed to one bit a frame."""
    if packed is None:
        return Grid(nav_chunks=nav_chunks)
    shape = tuple(sum(c) for c in nav_chunks)
    bits = np.frombuffer(packed, dtype=np.uint8)
    roi = np.unpackbits(bits, count=math.prod(shape)).astype(bool).reshape(shape)
    roi.flags.writeable = False
    return Grid(nav_chunks=nav_chunks, roi=roi)
