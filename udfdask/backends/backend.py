"""What each kind of array can do: one frozen value for each array type.

`udfdask.backends.table` lists these values. Code outside this folder asks a backend, and never
looks at the package of an array.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from udfdask.backends import device
from udfdask.base.types import AnyArray
from udfdask.errors import DeviceError


def locked(array: AnyArray) -> AnyArray:
    """Return a read-only view of an array; CuPy has no such views, its arrays are returned."""
    if not isinstance(array, np.ndarray):
        return array
    view = array.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Backend:
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

    def __dask_tokenize__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        # a recipe has several of each UDF: by name, they make tasks a quarter smaller
        from udfdask.backends.table import backend_named

        return (backend_named, (self.name,))

    @property
    def dense(self) -> DenseBackend:
        """The dense backend in the same memory, used for corrected tiles and dense tiles."""
        return CUPY if self.on_device else NUMPY

    def holds(self, dtype: np.dtype[Any]) -> bool:
        """Return whether the array type supports a dtype."""
        return dtype.char not in self.missing_dtypes

    def reshape(self, array: Any, shape: tuple[int, ...]) -> Any:
        """Return an array in another shape with the same first dimension."""
        return array.reshape(shape)

    def read_only(self, array: Any) -> AnyArray:
        """Return a read-only array with the same values, which are not copied."""
        return locked(array)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DenseBackend(Backend):
    """NumPy arrays; the base of other dense array types."""

    def namespace(self) -> Any:
        """Return the array module, such as NumPy; raise if it cannot be used here."""
        return np

    def to_host(self, array: Any) -> AnyArray:
        """Convert an array of this backend to a plain NumPy array."""
        return np.asarray(array)

    def from_host(self, array: AnyArray) -> Any:
        """Convert a NumPy array to an array of this backend."""
        return np.asarray(array)

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

    def own_copy(self, array: Any, dtype: np.dtype[Any]) -> Any:
        """Return a writable copy of an array in a dtype, in C order."""
        return self.namespace().array(array, dtype=dtype, order="C")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CupyBackend(DenseBackend):
    """CuPy arrays. They have no read-only views: a UDF that writes to a tile changes the data."""

    missing_dtypes: str = "gGOSTUVmM"

    def owns(self, kind: type) -> bool:
        """Return whether a class is the CuPy array or a subclass."""
        cupy = device.imported_cupy()
        return cupy is not None and issubclass(kind, cupy.ndarray)

    def check_dtype(self, dtype: np.dtype[Any]) -> None:
        """Raise if CuPy does not support a dtype; data of the other byte order are swapped."""
        if not self.holds(dtype):
            raise DeviceError(
                f"CuPy has no arrays of dtype {dtype}: convert the data, or pass backends='numpy'"
            )

    def namespace(self) -> Any:
        """Return CuPy."""
        return device.cupy()

    def to_host(self, array: Any) -> AnyArray:
        """Copy an array to the host."""
        return np.asarray(array.get())

    def from_host(self, array: AnyArray) -> Any:
        """Copy an array to the device, in native byte order."""
        values = np.asarray(array)
        self.check_dtype(values.dtype)
        return device.cupy().asarray(values.astype(values.dtype.newbyteorder("="), copy=False))

    def send(self, tile: AnyArray) -> Any:
        """Copy a tile to the device, through pinned memory."""
        self.check_dtype(tile.dtype)
        return device.tile_to_device(tile)

    def share(self, array: Any) -> Any:
        """Copy an array to the device for all threads, whatever their stream."""
        on_device = array if self.owns(type(array)) else self.from_host(array)
        # other threads use other streams, which would not wait for this copy
        self.wait()
        return on_device

    def wait(self) -> None:
        """Wait for the current stream of this thread."""
        device.cupy().cuda.get_current_stream().synchronize()

    def at_work(self, *, own_stream: bool) -> AbstractContextManager[None]:
        """Return a context in which the device of this process is the current device."""
        return device.using_device(own_stream=own_stream)


NUMPY = DenseBackend(name="numpy")
CUPY = CupyBackend(name="cupy", device="cuda", on_device=True)
CUDA = DenseBackend(name="cuda", device="cuda")
"""NumPy arrays for UDFs that use a CUDA device in their own way."""
