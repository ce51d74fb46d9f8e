"""An array in a file that is mapped into memory, at any distances between its values."""

from __future__ import annotations

import itertools
import math
import mmap
import operator
import os
import threading
import weakref
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from udfdask.config import map_files
from udfdask.errors import FileFormatError
from udfdask.graph.dask_internals import normalize_index
from udfdask.io.file_identity import FileIdentity

MOST_OWN = 128
"""Mappings up to which each block has its own: what is freed block by block leaves the memory that
a worker of a cluster counts as used. Beyond, the blocks of a file share one: so many are alive only
where somebody keeps them, as `persist` does."""

_Place = tuple[int, int, int]
"""Device, inode and size: a mapped file's inode is not given to another file."""

_lock = threading.Lock()
_alive: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
_latest: weakref.WeakValueDictionary[_Place, mmap.mmap] = weakref.WeakValueDictionary()


def map_file(descriptor: int, size: int) -> mmap.mmap:
    """Take a descriptor of a file and its size; return its memory, perhaps shared, read-only."""
    found = os.fstat(descriptor)
    place = found.st_dev, found.st_ino, size
    with _lock:
        shared = _latest.get(place) if len(_alive) >= MOST_OWN else None
        if shared is not None:
            return shared
        memory = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
        _alive.add(memory)
        _latest[place] = memory
        return memory


Values = np.ndarray[Any, Any]

_WASTE = 4
"""Bytes that may be read for each that is wanted: one long read takes less time than many short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedArray:
    """An array in a file, mapped into memory by each task that slices it, or read where asked."""

    file: FileIdentity
    """The file as it was when it was opened: a task that finds another one raises."""
    shape: tuple[int, ...]
    """Shape of the whole array."""
    dtype: np.dtype[Any]
    """Type of the values, byte order included."""
    offset: int
    """Where the first value starts, bytes from the beginning of the file."""
    strides: tuple[int, ...]
    """Bytes from a position to the next one, for each dimension."""
    mapped: bool = field(default_factory=map_files)
    """Map the file, or read the part that is wanted into memory: config `udfdask.map-files`."""

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def __getitem__(self, index: Any) -> Values:
        """Return the part at `index`, read-only: a view of the mapped file, or a copy."""
        descriptor = self.file.open()
        try:
            if 0 in self.shape:  # an empty file cannot be mapped
                nothing: Values = np.empty(self.shape, self.dtype)[index]
                return nothing
            if not self.mapped:
                return self._read(descriptor, index)
            memory = self._map(descriptor)
        finally:
            os.close(descriptor)
        whole = np.ndarray(self.shape, self.dtype, memory, self.offset, self.strides)
        part: Values = whole[index]
        return part

    def _map(self, descriptor: int) -> mmap.mmap:
        """Take a descriptor of the file; return its memory."""
        try:
            return map_file(descriptor, self.file.size)
        except (OSError, ValueError) as error:
            self.file.check(descriptor)  # cut a moment ago
            raise FileFormatError(
                f"{self.file.path} cannot be mapped into memory ({error}): read it instead, with "
                'dask.config.set({"udfdask.map-files": False}) before opening it'
            ) from error

    def _read(self, descriptor: int, index: Any) -> Values:
        """Take a descriptor of the file and a part of the array; return a copy of the part."""
        offset, shape, strides = self.offset, [], []
        for step, size, part in zip(
            self.strides, self.shape, normalize_index(index, self.shape), strict=True
        ):
            places = range(size)[part]
            if isinstance(places, int):
                offset += step * places
            else:
                offset += step * places.start
                shape.append(len(places))
                strides.append(step * places.step)
        with os.fdopen(descriptor, "rb", buffering=0, closefd=False) as stream:
            values = self._values(stream, offset, tuple(shape), tuple(strides))
        self.file.check(descriptor)
        values.flags.writeable = False
        return values

    def _values(
        self, stream: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]
    ) -> Values:
        """Take where values lie in the file; return them."""
        wanted = math.prod(shape) * self.dtype.itemsize
        if not wanted:
            return np.empty(shape, self.dtype)
        reach = [(size - 1) * step for size, step in zip(shape, strides, strict=True)]
        first = offset + sum(way for way in reach if way < 0)
        span = sum(map(abs, reach)) + self.dtype.itemsize
        if span <= _WASTE * wanted:
            memory = self._bytes(stream, first, span)
            return np.ndarray(shape, self.dtype, memory, offset - first, strides)
        axis = max(range(len(shape)), key=lambda dim: abs(reach[dim]))
        values = np.empty(shape, self.dtype)
        rows = np.moveaxis(values, axis, 0)
        rest = shape[:axis] + shape[axis + 1 :], strides[:axis] + strides[axis + 1 :]
        for place in range(shape[axis]):
            rows[place] = self._values(stream, offset + place * strides[axis], *rest)
        return values

    def _bytes(self, stream: Any, first: int, count: int) -> Values:
        """Take a place in the file; return so many bytes from there on."""
        memory = np.empty(count, np.uint8)
        missing = memory.data
        stream.seek(first)
        while missing:  # one call gives at most 2 GiB
            got = stream.readinto(missing)
            if not got:
                self.file.check(stream.fileno())
                raise FileFormatError(
                    f"{self.file.path} ends {len(missing)} bytes before the values that a task "
                    "needs: is the disk sound?"
                )
            missing = missing[got:]
        return memory


def c_strides(shape: tuple[int, ...], step: int) -> tuple[int, ...]:
    """Take a shape and the bytes of one step along its last axis; return strides in C order."""
    steps = itertools.accumulate(reversed(shape[1:]), operator.mul, initial=step)
    return tuple(reversed(list(steps)))[-len(shape) :] if shape else ()
