"""An array in a file that is mapped into memory, at any distances between its values."""

from __future__ import annotations

import itertools
import mmap
import operator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedArray:
    """An array in a file, mapped into memory by each task that slices it."""

    path: str
    """Absolute path of the file."""
    shape: tuple[int, ...]
    """Shape of the whole array."""
    dtype: np.dtype[Any]
    """Type of the values, byte order included."""
    offset: int
    """Where the first value starts, bytes from the beginning of the file."""
    strides: tuple[int, ...]
    """Bytes from a position to the next one, for each dimension."""

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def __getitem__(self, index: Any) -> np.ndarray[Any, Any]:
        """Return the part at `index`, a read-only view of the mapped file."""
        if 0 in self.shape:  # an empty file cannot be mapped
            nothing: np.ndarray[Any, Any] = np.empty(self.shape, self.dtype)[index]
            return nothing
        with Path(self.path).open("rb") as file:  # np.memmap takes twice as long
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        whole = np.ndarray(self.shape, self.dtype, memory, self.offset, self.strides)
        part: np.ndarray[Any, Any] = whole[index]
        return part


def c_strides(shape: tuple[int, ...], step: int) -> tuple[int, ...]:
    """Take a shape and the bytes of one step along its last axis; return strides in C order."""
    steps = itertools.accumulate(reversed(shape[1:]), operator.mul, initial=step)
    return tuple(reversed(list(steps)))[-len(shape) :] if shape else ()
