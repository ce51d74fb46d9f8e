"""Read an array in a plain file: map the file into memory, or read the parts that are needed."""

from __future__ import annotations

import itertools
import math
import mmap
import operator
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from udfdask.config import map_files
from udfdask.errors import FileFormatError
from udfdask.io.damaged_files import COPY_AGAIN
from udfdask.io.lazy_source import FileArray

Values = np.ndarray[Any, Any]


_WASTE = 4
"""Maximum ratio of bytes read at once to bytes needed: a read takes memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Values at equal distances in a file, such as frames with a header before each."""

    offset: int
    """Position of the first value, in bytes from the beginning of the file."""
    shape: tuple[int, ...]
    """Number of values along each axis."""
    strides: tuple[int, ...]
    """Bytes between neighboring values, for each axis; negative if an axis is read backwards."""
    dtype: np.dtype[Any]
    """Type of the values."""

    @property
    def nbytes(self) -> int:
        """Size of the values in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def first(self) -> int:
        """Position of the first byte to read."""
        return self.offset + sum(extent for extent in self._extents if extent < 0)

    @property
    def span(self) -> int:
        """Number of bytes from the first to the last one to read."""
        return sum(map(abs, self._extents)) + self.dtype.itemsize

    @property
    def runs(self) -> int:
        """Number of parts without gaps that contain the values."""
        run = self.dtype.itemsize
        steps = zip(map(abs, self.strides), self.shape, strict=True)
        for step, size in sorted((step, size) for step, size in steps if size > 1):
            if step != run:
                break
            run *= size
        return self.nbytes // run

    @property
    def _extents(self) -> list[int]:
        """Bytes between the first and the last value, for each axis."""
        return [(size - 1) * step for size, step in zip(self.shape, self.strides, strict=True)]

    def part(self, index: Any) -> tuple[Layout, tuple[int, ...]]:
        """Return the layout of the part at `index`, with all axes, and the shape of the part."""
        ranges, kept = positions_of(index, self.shape)
        steps = list(zip(self.strides, ranges, strict=True))
        part = replace(
            self,
            offset=self.offset + sum(step * along.start for step, along in steps if along),
            shape=tuple(len(along) for along in ranges),
            strides=tuple(step * along.step for step, along in steps),
        )
        return part, kept

    def pieces(
        self, is_one_read: Callable[[Layout], bool], index: tuple[slice, ...] = ()
    ) -> Iterator[tuple[tuple[slice, ...], Layout]]:
        """Yield the pieces to read one by one, and their places in the values.

        `is_one_read` says whether the whole span of a layout should be read at once.
        """
        index = index or (slice(None),) * len(self.shape)
        if self.nbytes <= self.dtype.itemsize or is_one_read(self):
            if self.nbytes:
                yield index, self
            return
        # values are sparse in the file: read row by row along the axis with the largest extent
        axis = max(range(len(self.shape)), key=lambda dim: abs(self._extents[dim]))
        shape = (*self.shape[:axis], 1, *self.shape[axis + 1 :])
        for row in range(self.shape[axis]):
            piece = replace(self, offset=self.offset + row * self.strides[axis], shape=shape)
            place = (*index[:axis], slice(row, row + 1), *index[axis + 1 :])
            yield from piece.pieces(is_one_read, place)

    def join(self, pieces: Iterable[tuple[tuple[slice, ...], Layout, Any]]) -> Values:
        """Return the values of all pieces: their places, layouts, and the bytes of their spans.

        The values of a single piece are a view of its bytes.
        """
        values = None
        for place, piece, memory in pieces:
            start = piece.offset - piece.first
            read: Values = np.ndarray(piece.shape, self.dtype, memory, start, piece.strides)
            if piece is self:
                return read
            values = np.empty(self.shape, self.dtype) if values is None else values
            values[place] = read
        return np.empty(self.shape, self.dtype) if values is None else values


def positions_of(index: Any, shape: tuple[int, ...]) -> tuple[list[range], tuple[int, ...]]:
    """Return the positions at an index along each axis, and the shape of the part there."""
    parts = list(index) if isinstance(index, tuple) else [index]
    missing = len(shape) - sum(part is not Ellipsis for part in parts)
    place = parts.index(Ellipsis) if Ellipsis in parts else len(parts)
    parts[place : place + 1] = [slice(None)] * missing
    ranges = []
    for part, size in zip(parts, shape, strict=True):
        if isinstance(part, slice):
            ranges.append(range(size)[part])
        else:
            at = range(size)[part]  # raises if it is outside
            ranges.append(range(at, at + 1))
    kept = [len(r) for part, r in zip(parts, ranges, strict=True) if isinstance(part, slice)]
    return ranges, tuple(kept)


MOST_OWN = 128
"""Number of mappings up to which each block has its own mapping. When a block is freed, its mapping
no longer counts as memory of the worker. More mappings are alive only if blocks are kept, as
`persist` does. Then the blocks of a file share one mapping, because each mapping takes a file
descriptor, and often a process can have only 1024 of them."""

_Identity = tuple[int, int, int]
"""Device, inode and size of a file. While a file is mapped, no other file gets its inode."""

_lock = threading.Lock()
_alive: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
_latest: weakref.WeakValueDictionary[_Identity, mmap.mmap] = weakref.WeakValueDictionary()


def map_file(descriptor: int, size: int) -> mmap.mmap:
    """Return a read-only mapping of an open file; many blocks share a mapping."""
    status = os.fstat(descriptor)
    identity = status.st_dev, status.st_ino, size
    with _lock:
        shared = _latest.get(identity) if len(_alive) >= MOST_OWN else None
        if shared is not None:
            return shared
        memory = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
        _alive.add(memory)
        _latest[identity] = memory
        return memory


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedArray(FileArray):
    """An array in a file that each task maps into memory, or reads its part of."""

    offset: int
    """Position of the first value, in bytes from the beginning of the file."""
    strides: tuple[int, ...]
    """Bytes between neighboring values, for each dimension."""
    mapped: bool = field(default_factory=map_files)
    """Map the file; otherwise read the part that is needed: config `udfdask.map-files`."""

    def __post_init__(self) -> None:
        layout = self._layout()
        end = layout.first + layout.span
        if 0 not in self.shape and not 0 <= layout.first < end <= self.file.size:
            raise FileFormatError(
                f"{self.file.path} has {self.file.size} bytes, but its values of shape "
                f"{self.shape} and type {self.dtype} need {end}. {COPY_AGAIN}"
            )

    def _layout(self) -> Layout:
        """Return where the values are."""
        return Layout(offset=self.offset, shape=self.shape, strides=self.strides, dtype=self.dtype)

    def __getitem__(self, index: Any) -> Values:
        """Return the part at `index`, read-only: a view of the mapped file, or a copy."""
        descriptor = self.file.open()
        try:
            if 0 in self.shape:  # an empty file cannot be mapped
                empty: Values = np.empty(self.shape, self.dtype)[index]
                return empty
            if not self.mapped:
                return self._read(descriptor, index)
            memory = self._map(descriptor)
        finally:
            os.close(descriptor)
        array = np.ndarray(self.shape, self.dtype, memory, self.offset, self.strides)
        part: Values = array[index]
        return part

    def _map(self, descriptor: int) -> mmap.mmap:
        """Return the mapping of the open file."""
        try:
            return map_file(descriptor, self.file.size)
        except (OSError, ValueError) as error:
            raise FileFormatError(
                f"{self.file.path} cannot be mapped into memory ({error}): read it instead, with "
                'dask.config.set({"udfdask.map-files": False}) before opening it'
            ) from error

    def _read(self, descriptor: int, index: Any) -> Values:
        """Return a copy of a part of the array, read from the open file."""
        part, shape = self._layout().part(index)
        with os.fdopen(descriptor, "rb", buffering=0, closefd=False) as stream:
            values = part.join(
                (place, piece, self._bytes(stream, piece.first, piece.span))
                for place, piece in part.pieces(_is_one_read)
            )
        self.file.check(descriptor)  # values written during the read could be mixed with old ones
        values.flags.writeable = False
        return values.reshape(shape)

    def _bytes(self, stream: Any, first: int, count: int) -> Values:
        """Return `count` bytes of the file from the position `first` on."""
        memory = np.empty(count, np.uint8)
        missing = memory.data
        stream.seek(first)
        while missing:  # Linux reads at most 2 GiB at once
            n_read = stream.readinto(missing)
            if not n_read:
                self.file.check(stream.fileno())
                raise FileFormatError(f"{self.file.path} ends before the values. {COPY_AGAIN}")
            missing = missing[n_read:]
        return memory


def c_strides(shape: tuple[int, ...], step: int) -> tuple[int, ...]:
    """Return strides in C order; `step` is the stride of the last axis in bytes."""
    steps = itertools.accumulate(reversed(shape[1:]), operator.mul, initial=step)
    return tuple(reversed(list(steps)))[-len(shape) :] if shape else ()


def _is_one_read(part: Layout) -> bool:
    """Return whether the whole span of a part is read at once from a local file."""
    return part.span <= _WASTE * part.nbytes
