"""Read arrays in a plain file: map the file into memory, or read the parts that are needed."""

from __future__ import annotations

import itertools
import mmap
import operator
import os
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.lib.stride_tricks import as_strided

from udfdask.base.config import map_files
from udfdask.errors import FileFormatError
from udfdask.io.file_identity import (
    COPY_AGAIN,
    FileIdentity,
    check_values,
    existing_file,
    reading,
)
from udfdask.io.lazy_source import StoredArray, Values
from udfdask.io.opened_file import OpenedFile, open_source

MAGIC = b"\x93NUMPY"
"""First bytes of .npy files."""

# Number of mappings, each with a file descriptor, up to which each block has its own: it no longer
# counts as memory when the block is freed. Further blocks of a file share one.
MOST_OWN = 128

# Mean number of bytes between two parts up to which one read takes the bytes between them too.
# fsspec has the same limit for references to parts of files.
_GAP = 1 << 16

_alive: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
_latest: weakref.WeakValueDictionary[FileIdentity, mmap.mmap] = weakref.WeakValueDictionary()


@dataclass(frozen=True, slots=True, kw_only=True)
class StridedArray(StoredArray):
    """Values at equal distances, `strides`, from a position, `offset`, in a file; in bytes."""

    offset: int
    strides: tuple[int, ...]

    def read_part(
        self, index: Any, read: Callable[[list[tuple[int, int]]], Iterable[Any]]
    ) -> Values:
        """Return a read-only copy of the part at `index`; `read` returns the bytes of ranges."""
        # an array of which only the addresses are used, so that NumPy calculates with the index
        whole = as_strided(np.empty(1, self.dtype), self.shape, self.strides)
        part = whole[(*(index if isinstance(index, tuple) else (index,)), ...)]
        origin = _address(whole) - self.offset
        values = np.empty(part.shape, self.dtype)
        pieces = list(_pieces(part, values)) if part.size else []
        bounds = [byte_bounds(piece) for piece, _ in pieces]
        memories = read([(low - origin, high - low) for low, high in bounds])
        for (piece, target), (low, _), memory in zip(pieces, bounds, memories, strict=True):
            start = _address(piece) - low
            found: Values = np.ndarray(piece.shape, self.dtype, memory, start, piece.strides)
            if len(pieces) == 1:
                values = found  # not a copy
            else:
                target[...] = found
        values.flags.writeable = False
        return values


def _address(values: Values) -> int:
    address: int = values.__array_interface__["data"][0]
    return address


def _pieces(part: Values, values: Values) -> Iterator[tuple[Values, Values]]:
    """Yield the pieces of a part to read one by one, with their places in the values."""
    run = part.itemsize  # bytes without a gap
    for step, size in sorted(zip(map(abs, part.strides), part.shape, strict=True)):
        run *= size if size > 1 and step == run else 1
    low, high = byte_bounds(part)
    if high - low - part.nbytes <= _GAP * (part.nbytes // run - 1):
        yield part, values
        return
    # the gaps are too large: read row by row along the axis with the largest extent
    extents = [abs(step) * (n - 1) for n, step in zip(part.shape, part.strides, strict=True)]
    axis = (slice(None),) * extents.index(max(extents))
    for row in range(part.shape[len(axis)]):
        place = (*axis, slice(row, row + 1))
        yield from _pieces(part[place], values[place])


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedArray(StridedArray):
    """An array in a file that each task maps into memory; if not `mapped`, it reads its part."""

    file: FileIdentity
    mapped: bool = field(default_factory=map_files)

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
        where: dict[str, Any] = {"offset": mapped.offset, "strides": mapped.strides}
        return cls(file=file, shape=mapped.shape, dtype=mapped.dtype, **where)

    def __getitem__(self, index: Any) -> Values:
        """Return the part at `index`, read-only: a view of the mapped file, or a copy."""
        descriptor = self.file.open()
        try:
            if self.mapped and 0 not in self.shape:
                with suppress(OSError):  # some file systems cannot map
                    memory = _latest.get(self.file) if len(_alive) >= MOST_OWN else None
                    if memory is None:
                        memory = mmap.mmap(descriptor, self.file.size, access=mmap.ACCESS_READ)
                        _alive.add(memory)
                        _latest[self.file] = memory
                    whole = np.ndarray(self.shape, self.dtype, memory, self.offset, self.strides)
                    part: Values = whole[index]
                    return part
            with os.fdopen(descriptor, "rb", buffering=0, closefd=False) as stream:
                values = self.read_part(
                    index, lambda ranges: (self._bytes(stream, *each) for each in ranges)
                )
            self.file.check(descriptor)  # values written meanwhile could be mixed with old ones
            return values
        finally:
            os.close(descriptor)

    def _bytes(self, stream: Any, first: int, count: int) -> Values:
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


def open_npy(file: Path, **how: Any) -> OpenedFile:
    """Open a .npy file; `how` are `sig_dims` and `chunks`."""
    identity = FileIdentity.of(file)  # before the header is read, so that a change is noticed
    source = MappedArray.of(_mapped(file), identity)
    return open_source(source, prefix="from-npy", reader="NumPy", title=file.stem, **how)


def read_npy(path: str | os.PathLike[str]) -> Values:
    """Return the array in a .npy file, read into memory."""
    return np.array(_mapped(existing_file(path)))


def _mapped(file: Path) -> np.memmap[Any, Any]:
    with reading(file, "a .npy file"):
        mapped = np.lib.format.open_memmap(file, mode="r")
    check_values(str(file), mapped.shape, mapped.dtype)
    return mapped
