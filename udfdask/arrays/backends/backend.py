"""What the engine must know about a type of arrays: one frozen value stands for each.

The values are listed in `udfdask.arrays.backends.table`. Code outside of this folder asks them, and
never which package an array comes from.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from udfdask.arrays.backends.read_only import locked_sparse
from udfdask.types import AnyArray

if TYPE_CHECKING:
    from udfdask.arrays.backends.sparse_rows import SparseRows


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend(ABC):
    """One type of arrays."""

    name: str
    """Name in the words of LiberTEM and `sparseconverter`, as users write it."""
    device: Literal["cpu", "cuda"] = "cpu"
    """What a worker must have for it."""
    on_device: bool = False
    """Whether its arrays are in the memory of that device. Those of `cuda` are NumPy arrays."""
    is_sparse: bool = False
    """Whether only values other than 0 are stored."""
    is_matrix: bool = False
    """Whether arrays have two dimensions, frames and pixels."""
    missing_dtypes: str = ""
    """Characters of the dtypes that it does not have."""
    is_in_converter: bool = True
    """Whether `sparseconverter` knows it. All others are converted by way of NumPy arrays."""

    @property
    @abstractmethod
    def dense(self) -> DenseBackend:
        """The dense backend in the same memory: of tiles that are corrected or made dense."""

    @abstractmethod
    def read_only(self, array: Any) -> Any:
        """Return an array of the same values that cannot be written to, without copying them."""

    def holds(self, dtype: np.dtype[Any]) -> bool:
        """Return whether it has arrays of a dtype."""
        return dtype.char not in self.missing_dtypes

    def shape_of(self, frames: int, sig: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape in which it has some frames."""
        return (frames, math.prod(sig)) if self.is_matrix else (frames, *sig)

    def reshape(self, array: Any, shape: tuple[int, ...]) -> Any:
        """Return an array in another shape with the same first dimension."""
        return array.reshape(shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseBackend(Backend):
    """A type of dense arrays; what is said here is true of arrays in the memory of the host."""

    is_compiled_for: bool = False
    """Whether kernels that numba compiles read its arrays."""

    @property
    def dense(self) -> DenseBackend:
        """Itself."""
        return self

    @abstractmethod
    def owns(self, kind: type) -> bool:
        """Return whether arrays of a class are of this backend."""

    @abstractmethod
    def namespace(self) -> Any:
        """Return the module that makes its arrays; raise if it cannot be used here."""

    @abstractmethod
    def to_host(self, array: Any) -> AnyArray:
        """Return one of its arrays as a NumPy array."""

    @abstractmethod
    def from_host(self, array: AnyArray) -> Any:
        """Return a NumPy array as one of its arrays."""

    @abstractmethod
    def read_only(self, array: Any) -> AnyArray:
        """Return a read-only view of one of its arrays, or the array where there are none."""

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> AnyArray:
        """Return an array whose values are yet to be written."""
        made: AnyArray = self.namespace().empty(shape, dtype=dtype)
        return made

    def send(self, tile: AnyArray) -> Any:
        """Return a tile of the host as one of its arrays, perhaps still on its way.

        Called within `at_work`, where what is done to the tile next waits for it.
        """
        return self.from_host(tile)

    def share(self, array: Any) -> Any:
        """Return an array of the host as one of its own that every thread may use at once."""
        return self.from_host(array)

    def wait(self) -> None:
        """Wait until what this thread has asked for is done, so that others may take it."""

    def at_work(self, *, own_stream: bool) -> AbstractContextManager[None]:
        """Return the context of a task that works on its arrays.

        `own_stream` is true where the data come from the host: nothing on the device has to be
        waited for then.
        """
        return nullcontext()

    def check_dtype(self, dtype: np.dtype[Any]) -> None:
        """Raise if it is on a device that has no arrays of a dtype."""

    def astype(self, array: Any, dtype: np.dtype[Any]) -> Any:
        """Return a copy of an array in a dtype, of no certain order in memory."""
        return array.astype(dtype)

    def own_copy(self, array: Any, dtype: np.dtype[Any]) -> Any:
        """Return a writable copy of an array in a dtype, in C order."""
        return self.namespace().array(array, dtype=dtype, order="C")

    @abstractmethod
    def with_flat_nav(self, block: Any, nav_shape: tuple[int, ...]) -> Any:
        """Return a read-only block, with one navigation axis if that is a view of it."""

    @abstractmethod
    def has_neighboring_frames(self, block: Any) -> bool:
        """Return whether kernels read many frames of a block as they are.

        The block has one navigation axis.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseBackend(Backend):
    """A type of sparse arrays. Its name begins with their package and ends with their class."""

    is_sparse: bool = True
    dense_kind: DenseBackend
    """What `dense` returns."""
    rows_kind: str
    """Name of the compressed rows in the same memory, through which it becomes dense."""

    @property
    def dense(self) -> DenseBackend:
        """The dense backend in the same memory."""
        return self.dense_kind

    def read_only(self, array: Any) -> Any:
        """Return an array of the same values and places, none of which can be written to."""
        return locked_sparse(array)

    def for_conversion(self, array: Any) -> Any:
        """Return an array in the form from which it is converted to other backends."""
        return array

    @abstractmethod
    def frames(self, block: Any, nav_dims: int) -> SparseRows:
        """Return the frames of a block, shape (*nav, *sig part), checked."""

    @abstractmethod
    def frames_of_stack(self, stack: Any) -> SparseRows:
        """Return the frames of what has been cut out of such frames, and perhaps converted."""

    @abstractmethod
    def join(self, parts: list[Any], counts: list[int]) -> Any:
        """Return whole frames from their signal parts, `counts` of them along each signal axis."""
