"""Say where the values of an array are in a file, and which parts of the file to read for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Values = np.ndarray[Any, Any]


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
        offset, shape, strides, kept = self.offset, [], [], []
        parts = _for_each_axis(index, len(self.shape))
        for step, size, part in zip(self.strides, self.shape, parts, strict=True):
            if isinstance(part, slice):
                indices = range(size)[part]
            else:
                at = range(size)[part]  # raises if it is outside
                indices = range(at, at + 1)
            offset += step * indices.start if indices else 0
            shape.append(len(indices))
            strides.append(step * indices.step)
            if isinstance(part, slice):
                kept.append(len(indices))
        part = replace(self, offset=offset, shape=tuple(shape), strides=tuple(strides))
        return part, tuple(kept)

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


def _for_each_axis(index: Any, ndim: int) -> list[Any]:
    """Return the slice or integer of an index for each axis."""
    parts = list(index) if isinstance(index, tuple) else [index]
    missing = ndim - sum(part is not Ellipsis for part in parts)
    place = parts.index(Ellipsis) if Ellipsis in parts else len(parts)
    parts[place : place + 1] = [slice(None)] * missing
    return parts
