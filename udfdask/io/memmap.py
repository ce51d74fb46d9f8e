"""Read an array in a plain file: map the file into memory, or read the part that is needed."""

from __future__ import annotations

import itertools
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
from udfdask.io.damaged_files import COPY_AGAIN
from udfdask.io.lazy_source import FileArray
from udfdask.io.strided_layout import Layout, Values

MOST_OWN = 128
"""Number of mappings up to which each block has its own mapping. When a block is freed, its mapping
no longer counts as memory of the worker. More mappings are alive only if blocks are kept, as
`persist` does. Then the blocks of a file share one mapping, because each mapping takes a file
descriptor, and often a process can have only 1024 of them."""

_WASTE = 4
"""Maximum ratio of bytes read to bytes needed."""

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
            self.file.check(descriptor)  # perhaps the file has just become shorter
            raise FileFormatError(
                f"{self.file.path} cannot be mapped into memory ({error}): read it instead, with "
                'dask.config.set({"udfdask.map-files": False}) before opening it'
            ) from error

    def _read(self, descriptor: int, index: Any) -> Values:
        """Return a copy of a part of the array, read from the open file."""
        part, shape = self._layout().part(index)
        with os.fdopen(descriptor, "rb", buffering=0, closefd=False) as stream:
            pieces = part.pieces(_is_one_read)
            values = part.join(
                (place, piece, self._bytes(stream, piece.first, piece.span))
                for place, piece in pieces
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
                raise FileFormatError(
                    f"{self.file.path} ends {len(missing)} bytes before the values that a task "
                    "needs: check the disk, and copy the file again"
                )
            missing = missing[n_read:]
        return memory


def _is_one_read(part: Layout) -> bool:
    """Return whether one long read of a part is faster than many short ones."""
    return part.span <= _WASTE * part.nbytes


def c_strides(shape: tuple[int, ...], step: int) -> tuple[int, ...]:
    """Return strides in C order; `step` is the stride of the last axis in bytes."""
    steps = itertools.accumulate(reversed(shape[1:]), operator.mul, initial=step)
    return tuple(reversed(list(steps)))[-len(shape) :] if shape else ()
