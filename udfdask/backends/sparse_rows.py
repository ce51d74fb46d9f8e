"""Sparse array types, and the frames of their blocks."""

from __future__ import annotations

import copy
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from udfdask.backends.backend import Backend, locked
from udfdask.base.types import AnyArray
from udfdask.errors import missing_package

_ROWS = "scipy.sparse.csr_array"
"""The format on the host that frames become before they are made dense."""


def converter(purpose: str) -> Any:
    """Return the package `sparseconverter`; an error says that `purpose` needs it."""
    # not imported at the top: it loads SciPy and numba
    try:
        import sparseconverter
    except ImportError as e:
        name = e.name or "sparseconverter"
        raise missing_package(name, purpose=purpose, extra="sparse") from None
    return sparseconverter


def converted(array: Any, name: str) -> Any:
    """Convert an array to the backend with this name; matrices flatten the signal."""
    if not array.dtype.isnative:  # neither sparse nor SciPy computes in another byte order
        array = array.astype(array.dtype.newbyteorder("="))
    return converter(f"converting to {name}").for_backend(array, name)


def locked_sparse(array: Any) -> Any:
    """Return a sparse array with the same values and indices, all read-only.

    Methods that replace these arrays, such as SciPy's `resize`, only change the returned array.
    """
    result = copy.copy(array)  # shallow
    for name in ("data", "indices", "indptr", "coords"):
        part = vars(result).get(name)
        if isinstance(part, tuple):
            setattr(result, name, tuple(locked(p) for p in part))
        elif isinstance(part, dict):  # sparse.DOK accepts no read-only mapping: copy it
            setattr(result, name, dict(part))
        elif part is not None:
            setattr(result, name, locked(part))
    return result


def coo_starts(frames: Any) -> AnyArray:
    """Return the index of the first entry of each frame, then the number of entries, int64."""
    coords = frames.coords
    # searchsorted would convert all coordinates to the dtype of these numbers
    numbers = np.arange(frames.shape[0]).astype(coords.dtype)
    return np.append(np.searchsorted(coords[0], numbers), np.int64(coords.shape[1]))


class SparseRows:
    """The frames of a sparse block, shape (frames, *sig), or (frames, pixels) for matrices.

    No pixel is stored twice in a frame. Values have native byte order, float16 is converted to
    float32, and all arrays are read-only.
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
    def starts(self) -> AnyArray:
        """Starts of coordinate lists, see `coo_starts`."""
        return coo_starts(self.array)

    @cached_property
    def csr(self) -> Any:
        """The frames as a CSR matrix."""
        array = self.backend.for_conversion(self.array)
        kind = "cupyx.scipy.sparse.csr_matrix" if self.backend.on_device else _ROWS
        return array if kind.endswith(f".{type(array).__name__}") else converted(array, kind)

    def take(self, frames: AnyArray) -> SparseRows:
        """Return some frames, given by their indices."""
        return SparseRows(self.backend.select(self, frames), self.sig, self.backend)

    def rows(self, start: int, stop: int) -> Any:
        """Return the frames from `start` to `stop`, in the format of the block."""
        if (start, stop) == (0, len(self)):
            return self.array
        return self.backend.read_only(self.backend.select(self, slice(start, stop)))

    def dense(self, start: int, stop: int, first: int, last: int) -> AnyArray:
        """Return the pixels from `first` to `last` of some frames, shape (frames, last - first)."""
        rows = cut_rows(self.csr, start, stop)
        csr = rows if (first, last) == (0, rows.shape[1]) else rows[:, first:last]
        dense: AnyArray = converted(csr, self.backend.dense.name).reshape(csr.shape)
        return dense


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparseBackend(Backend):
    """A sparse array type. Its name is its package, perhaps submodules, and its class."""

    is_sparse: bool = True

    def read_only(self, array: Any) -> Any:
        """Return an array with the same values and indices, all read-only."""
        return locked_sparse(array)

    def for_conversion(self, array: Any) -> Any:
        """Return an array in the format that is best converted to other backends."""
        return array

    @abstractmethod
    def frames(self, block: Any, nav_dims: int) -> SparseRows:
        """Check a block of shape (*nav, *part of sig) and return its frames."""

    def frames_of_stack(self, stack: Any) -> SparseRows:
        """Return the frames of a stack that was cut out of such frames, and perhaps converted."""
        return SparseRows(stack, tuple(stack.shape[1:]), self)

    @abstractmethod
    def select(self, rows: SparseRows, frames: Any) -> Any:
        """Return some frames, given as an index array or a slice, in the same format."""

    @abstractmethod
    def join(self, parts: list[Any], counts: list[int]) -> Any:
        """Join full frames from their signal parts, `counts` parts along each signal axis."""


def cut_rows(csr: Any, start: int, stop: int) -> Any:
    """Return some rows of a CSR matrix, without copying values and indices."""
    values = slice(int(csr.indptr[start]), int(csr.indptr[stop]))
    starts = csr.indptr[start : stop + 1] - csr.indptr[start]
    return csr_rows(type(csr), csr.data[values], csr.indices[values], starts, csr.shape[1])


def csr_rows(cls: type, values: Any, pixels: Any, starts: Any, width: int) -> Any:
    """Make a CSR matrix out of these arrays, without copying or checking them."""
    matrix = cls((len(starts) - 1, width), dtype=values.dtype)
    # not given to the constructor: it reads all indices, and may copy 64-bit indices. In a sum
    # over the pixels of raw CSR frames, such passes took more than two thirds of the time
    matrix.data, matrix.indices, matrix.indptr = values, pixels, starts
    return matrix


def with_compiled_dtype(array: Any) -> Any:
    """Convert an array to a dtype that compiled code supports: native byte order, no float16."""
    if array.dtype.char == "e":
        return array.astype("f4")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
