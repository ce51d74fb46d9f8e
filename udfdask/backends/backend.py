"""What each kind of array can do: one frozen value for each array type.

`udfdask.backends.table` lists these values. Code outside this folder asks a backend, and never
looks at the package of an array.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from udfdask.types import AnyArray

if TYPE_CHECKING:
    from udfdask.backends.sparse_rows import SparseRows


def locked(array: AnyArray) -> AnyArray:
    """Return a read-only view of an array; CuPy has no such views, its arrays are returned."""
    if not isinstance(array, np.ndarray):
        return array
    view = array.view()
    view.flags.writeable = False
    return view


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Backend(ABC):
    """One array type. Backends are compared by identity."""

    name: str
    """Name that users write, as in LiberTEM and `sparseconverter`."""
    device: Literal["cpu", "cuda"] = "cpu"
    """The device that a worker must have."""
    on_device: bool = False
    """Whether arrays are in the memory of the device. For the backend `cuda` they are not."""
    is_sparse: bool = False
    """Whether only nonzero values are stored."""
    is_matrix: bool = False
    """Whether arrays have two dimensions, (frames, pixels)."""
    missing_dtypes: str = ""
    """Characters of the dtypes that the array type does not support."""
    is_in_converter: bool = True
    """Whether `sparseconverter` supports it. Other backends are converted via NumPy arrays."""

    def __dask_tokenize__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        # a recipe has several of each UDF: by name, they make tasks a quarter smaller
        from udfdask.backends.table import backend_named

        return (backend_named, (self.name,))

    @property
    @abstractmethod
    def dense(self) -> DenseBackend:
        """The dense backend in the same memory, used for corrected tiles and dense tiles."""

    @abstractmethod
    def read_only(self, array: Any) -> Any:
        """Return a read-only array with the same values, without copying them."""

    def holds(self, dtype: np.dtype[Any]) -> bool:
        """Return whether the array type supports a dtype."""
        return dtype.char not in self.missing_dtypes

    def shape_of(self, frames: int, sig: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of an array of frames: matrices flatten the signal."""
        return (frames, math.prod(sig)) if self.is_matrix else (frames, *sig)

    def reshape(self, array: Any, shape: tuple[int, ...]) -> Any:
        """Return an array in another shape with the same first dimension."""
        return array.reshape(shape)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DenseBackend(Backend):
    """A dense array type; the methods that are not abstract fit arrays in host memory."""

    is_compiled_for: bool = False
    """Whether numba's kernels can read the arrays."""

    @property
    def dense(self) -> DenseBackend:
        """The backend itself."""
        return self

    @abstractmethod
    def owns(self, kind: type) -> bool:
        """Return whether arrays of a class belong to this backend."""

    @abstractmethod
    def namespace(self) -> Any:
        """Return the array module, such as NumPy; raise if it cannot be used here."""

    @abstractmethod
    def to_host(self, array: Any) -> AnyArray:
        """Convert an array of this backend to a NumPy array."""

    @abstractmethod
    def from_host(self, array: AnyArray) -> Any:
        """Convert a NumPy array to an array of this backend."""

    @abstractmethod
    def read_only(self, array: Any) -> AnyArray:
        """Return a read-only view of an array, or the array if it has no such views."""

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> AnyArray:
        """Return an array with arbitrary values."""
        array: AnyArray = self.namespace().empty(shape, dtype=dtype)
        return array

    def send(self, tile: AnyArray) -> Any:
        """Convert a tile in host memory to an array of this backend, perhaps asynchronously.

        Call it within `at_work`: later operations on the tile wait for the transfer.
        """
        return self.from_host(tile)

    def share(self, array: Any) -> Any:
        """Convert an array to one of this backend that all threads may use immediately."""
        return self.from_host(array)

    def wait(self) -> None:
        """Wait until this thread's work is finished, so that other threads may use its results."""

    def at_work(self, *, own_stream: bool) -> AbstractContextManager[None]:
        """Return the context in which a task works on arrays of this backend.

        Set `own_stream` if the data come from the host: then nothing on the device has to be
        finished first.
        """
        return nullcontext()

    def check_dtype(self, dtype: np.dtype[Any]) -> None:
        """Raise if the device does not support a dtype."""

    def astype(self, array: Any, dtype: np.dtype[Any]) -> Any:
        """Return a copy of an array in a dtype, in any memory order."""
        return array.astype(dtype)

    def own_copy(self, array: Any, dtype: np.dtype[Any]) -> Any:
        """Return a writable copy of an array in a dtype, in C order."""
        return self.namespace().array(array, dtype=dtype, order="C")

    @abstractmethod
    def with_flat_nav(self, block: Any, nav_shape: tuple[int, ...]) -> Any:
        """Return a block read-only, with its navigation axes flattened if that needs no copy."""

    @abstractmethod
    def has_neighboring_frames(self, block: Any) -> bool:
        """Return whether kernels can read many frames of a block without a copy.

        The block has one navigation axis.
        """


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparseBackend(Backend):
    """A sparse array type. Its name is its package, perhaps submodules, and its class."""

    is_sparse: bool = True
    dense_kind: DenseBackend
    """The value of `dense`."""
    rows_kind: str
    """Name of the CSR format in the same memory: the intermediate step to dense arrays."""

    @property
    def dense(self) -> DenseBackend:
        """The dense backend in the same memory."""
        return self.dense_kind

    def read_only(self, array: Any) -> Any:
        """Return an array with the same values and indices, all read-only."""
        return locked_sparse(array)

    def for_conversion(self, array: Any) -> Any:
        """Return an array in the format that is best converted to other backends."""
        return array

    @abstractmethod
    def frames(self, block: Any, nav_dims: int) -> SparseRows:
        """Check a block of shape (*nav, *part of sig) and return its frames."""

    @abstractmethod
    def frames_of_stack(self, stack: Any) -> SparseRows:
        """Return the frames of a stack that was cut out of such frames, and perhaps converted."""

    @abstractmethod
    def join(self, parts: list[Any], counts: list[int]) -> Any:
        """Join full frames from their signal parts, `counts` parts along each signal axis."""
