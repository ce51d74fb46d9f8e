"""Read arrays in a plain file: map the file into memory, or read the parts that are needed."""

from __future__ import annotations

import itertools
import mmap
import operator
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.lib.stride_tricks import as_strided

from udfdask.config import map_files
from udfdask.errors import FileFormatError
from udfdask.io.file_identity import COPY_AGAIN, FileIdentity, reading
from udfdask.io.lazy_source import StoredArray

Values = np.ndarray[Any, Any]

_WASTE = 4
"""Maximum ratio of bytes read at once to bytes needed: a read takes memory."""

_WITHOUT_MAPPING = (
    'Open it after dask.config.set({"udfdask.map-files": False}), so that tasks read only what '
    "they need"
)

MOST_OWN = 128
"""Number of mappings up to which each block has its own mapping. When a block is freed, its mapping
no longer counts as memory of the worker. More mappings are alive only if blocks are kept, as
`persist` does. Then the blocks of a file share one mapping, because each mapping takes a file
descriptor, and often a process can have only 1024 of them."""

_lock = threading.Lock()
_alive: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
_latest: weakref.WeakValueDictionary[tuple[int, int, int], mmap.mmap] = (
    weakref.WeakValueDictionary()
)
"""Mappings by device, inode and size: while a file is mapped, no other file gets its inode."""


def map_file(descriptor: int, size: int) -> mmap.mmap:
    """Return a read-only mapping of an open file; many blocks share a mapping."""
    status = os.fstat(descriptor)
    identity = status.st_dev, status.st_ino, size
    with _lock:
        shared = _latest.get(identity) if len(_alive) >= MOST_OWN else None
        if shared is None:
            shared = _latest[identity] = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
            _alive.add(shared)
        return shared


@dataclass(frozen=True, slots=True, kw_only=True)
class StridedArray(StoredArray):
    """Values at equal distances in a file, such as frames with a header before each."""

    offset: int
    """Position of the first value, in bytes from the beginning of the file."""
    strides: tuple[int, ...]
    """Bytes between neighboring values, for each dimension."""

    def read_part(
        self,
        index: Any,
        read: Callable[[list[tuple[int, int]]], Iterable[Any]],
        is_one_read: Callable[[Values], bool],
    ) -> Values:
        """Return a read-only copy of the part at `index`.

        `read` returns the bytes of ranges, each a position and a number of bytes. `is_one_read`
        says whether all bytes from the first to the last one of a part should be read at once.
        """
        # an array of which only the addresses are used, so that NumPy calculates with the index
        whole = as_strided(np.empty(1, self.dtype), self.shape, self.strides)
        part = whole[(*(index if isinstance(index, tuple) else (index,)), ...)]
        origin = _address(whole) - self.offset
        values = np.empty(part.shape, self.dtype)
        pieces = list(_pieces(part, values, is_one_read)) if part.size else []
        bounds = [byte_bounds(piece) for piece, _ in pieces]
        memories = read([(low - origin, high - low) for low, high in bounds])
        for (piece, target), (low, _), memory in zip(pieces, bounds, memories, strict=True):
            found: Values = np.ndarray(
                piece.shape, self.dtype, memory, _address(piece) - low, piece.strides
            )
            if len(pieces) == 1:
                values = found  # not a copy
            else:
                target[...] = found
        values.flags.writeable = False
        return values


def _address(values: Values) -> int:
    """Return the position of the first value of an array in memory."""
    address: int = values.__array_interface__["data"][0]
    return address


def _pieces(
    part: Values, values: Values, is_one_read: Callable[[Values], bool]
) -> Iterator[tuple[Values, Values]]:
    """Yield the pieces of a part to read one by one, with their places in the values."""
    if part.size == 1 or is_one_read(part):
        yield part, values
        return
    # values are sparse in the file: read row by row along the axis with the largest extent
    extents = [abs(step) * (n - 1) for n, step in zip(part.shape, part.strides, strict=True)]
    axis = (slice(None),) * extents.index(max(extents))
    for row in range(part.shape[len(axis)]):
        place = (*axis, slice(row, row + 1))
        yield from _pieces(part[place], values[place], is_one_read)


def span(part: Values) -> int:
    """Return the number of bytes from the first to the last one of an array."""
    low, high = byte_bounds(part)
    return high - low


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedArray(StridedArray):
    """An array in a file that each task maps into memory, or reads its part of."""

    file: FileIdentity
    """The file when it was opened; tasks raise if it has changed."""
    mapped: bool = field(default_factory=map_files)
    """Map the file; otherwise read the part that is needed: config `udfdask.map-files`."""

    def __post_init__(self) -> None:
        steps = [step * (n - 1) for n, step in zip(self.shape, self.strides, strict=True)]
        first = self.offset + sum(step for step in steps if step < 0)
        end = self.offset + sum(step for step in steps if step > 0) + self.dtype.itemsize
        if 0 not in self.shape and not 0 <= first < end <= self.file.size:
            raise FileFormatError(
                f"{self.file.path} has {self.file.size} bytes, but its values of shape "
                f"{self.shape} and type {self.dtype} need {end}. {COPY_AGAIN}"
            )

    @classmethod
    def of(cls, mapped: np.memmap[Any, Any], file: FileIdentity) -> MappedArray:
        """Return the array that NumPy has mapped, to be mapped again by each task."""
        return cls(
            file=file,
            shape=mapped.shape,
            dtype=mapped.dtype,
            offset=mapped.offset,
            strides=mapped.strides,
        )

    def __getitem__(self, index: Any) -> Values:
        """Return the part at `index`, read-only: a view of the mapped file, or a copy."""
        descriptor = self.file.open()
        try:
            if 0 in self.shape:  # an empty file cannot be mapped
                empty: Values = np.empty(self.shape, self.dtype)[index]
                return empty
            if not self.mapped:
                return self._read(descriptor, index)
            with reading(self.file.path, "a memory map", advice=_WITHOUT_MAPPING):
                memory = map_file(descriptor, self.file.size)
        finally:
            os.close(descriptor)
        array = np.ndarray(self.shape, self.dtype, memory, self.offset, self.strides)
        part: Values = array[index]
        return part

    def _read(self, descriptor: int, index: Any) -> Values:
        """Return a copy of a part of the array, read from the open file."""
        with os.fdopen(descriptor, "rb", buffering=0, closefd=False) as stream:
            values = self.read_part(
                index,
                lambda ranges: (self._bytes(stream, *each) for each in ranges),
                lambda part: span(part) <= _WASTE * part.nbytes,
            )
        self.file.check(descriptor)  # values written during the read could be mixed with old ones
        return values

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
