"""The frames of a sparse block as rows that can be cut out, in the format of the block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

from udfdask.arrays.backends.backend import SparseBackend
from udfdask.arrays.backends.converter import converted
from udfdask.types import AnyArray


class SparseRows(ABC):
    """The frames of a sparse block, shape (frames, *part of the signal).

    No pixel occurs twice in a frame, values are in the byte order of the machine, float16 as
    float32, and nobody may write to them.

    Parameters
    ----------
    array : sparse array
        The frames, shape (frames, *sig part), or (frames, pixels) of a matrix.
    sig : tuple of int
        Shape of the part of the signal.
    backend : SparseBackend
        What the array is.
    """

    def __init__(self, array: Any, sig: tuple[int, ...], backend: SparseBackend) -> None:
        self.array = backend.read_only(array)
        self.sig = sig
        self.backend = backend

    def __len__(self) -> int:
        return int(self.array.shape[0])

    @property
    def dtype(self) -> Any:
        """Dtype of the values."""
        return self.array.dtype

    @cached_property
    def _csr(self) -> Any:
        """The frames as a matrix of compressed rows."""
        array = self.backend.for_conversion(self.array)
        kind = self.backend.rows_kind
        return array if kind.endswith(f".{type(array).__name__}") else converted(array, kind)

    @abstractmethod
    def _picked(self, places: Any) -> Any:
        """Return some of the frames, by their places or a slice of them, in the same format."""

    def take(self, places: AnyArray) -> SparseRows:
        """Return some of the frames, by their places."""
        return type(self)(self._picked(places), self.sig, self.backend)

    def rows(self, start: int, stop: int) -> Any:
        """Return the frames from `start` to `stop`, in the format of the block."""
        if (start, stop) == (0, len(self)):
            return self.array
        return self.backend.read_only(self._picked(slice(start, stop)))

    def dense(self, start: int, stop: int, first: int, last: int) -> AnyArray:
        """Return the pixels from `first` to `last` of some frames, shape (frames, last - first)."""
        csr = self._csr
        rows = cut_rows(csr, start, stop)
        if (first, last) != (0, csr.shape[1]):
            rows = rows[:, first:last]
        return self._made_dense(rows)

    def pixels(self, start: int, stop: int, places: AnyArray) -> AnyArray:
        """Return some pixels of some frames, shape (frames, m); `places` are flat."""
        return self._made_dense(self._csr[start:stop][:, places])

    def _made_dense(self, rows: Any) -> AnyArray:
        """Return compressed rows as a dense array in the same memory."""
        dense: AnyArray = converted(rows, self.backend.dense.name).reshape(rows.shape)
        return dense


def cut_rows(csr: Any, start: int, stop: int) -> Any:
    """Return some rows of a matrix of compressed rows: values and places stay where they are."""
    values = slice(int(csr.indptr[start]), int(csr.indptr[stop]))
    starts = csr.indptr[start : stop + 1] - csr.indptr[start]
    return csr_rows(type(csr), csr.data[values], csr.indices[values], starts, csr.shape[1])


def csr_rows(cls: type, values: Any, pixels: Any, starts: Any, width: int) -> Any:
    """Return a matrix of compressed rows made of these very arrays."""
    matrix = cls((len(starts) - 1, width), dtype=values.dtype)
    # given to the constructor, indices of eight bytes may be copied, and all of them are read
    matrix.data, matrix.indices, matrix.indptr = values, pixels, starts
    return matrix


def with_compiled_dtype(array: Any) -> Any:
    """Return an array in a dtype that compiled code knows: no other byte order, no float16."""
    if array.dtype.char == "e":
        return array.astype("f4")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
