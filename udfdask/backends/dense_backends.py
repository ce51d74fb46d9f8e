"""Dense array types: NumPy in host memory, CuPy on a CUDA device."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from udfdask.backends import device
from udfdask.backends.backend import DenseBackend, locked
from udfdask.types import AnyArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NumpyBackend(DenseBackend):
    """NumPy arrays."""

    is_compiled_for: bool = True

    def owns(self, kind: type) -> bool:
        """Return whether a class is the NumPy array or a subclass."""
        return issubclass(kind, np.ndarray)

    def read_only(self, array: Any) -> AnyArray:
        """Return a read-only view of an array."""
        return locked(array)

    def namespace(self) -> Any:
        """Return NumPy."""
        return np

    def to_host(self, array: Any) -> AnyArray:
        """Return the array; a subclass of NumPy's array becomes a plain one."""
        return np.asarray(array)

    def from_host(self, array: AnyArray) -> Any:
        """Return the array; a subclass of NumPy's array becomes a plain one."""
        return np.asarray(array)

    def with_flat_nav(self, block: Any, nav_shape: tuple[int, ...]) -> Any:
        """Return a block read-only, with its navigation axes flattened if that needs no copy."""
        array = locked(np.asarray(block))
        if len(nav_shape) == 1:
            return array
        shape = (math.prod(nav_shape), *array.shape[len(nav_shape) :])
        try:
            return locked(array.reshape(shape, copy=False))
        except ValueError:
            return array

    def has_neighboring_frames(self, block: Any) -> bool:
        """Return whether frames are contiguous, aligned, and in increasing order in memory."""
        return bool(block[:1].flags.c_contiguous and block.strides[0] >= 0 and block.flags.aligned)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CudaBackend(NumpyBackend):
    """NumPy arrays for UDFs that use a CUDA device in their own way."""

    @property
    def dense(self) -> DenseBackend:
        """NumPy: these UDFs get NumPy arrays."""
        return NUMPY

    def owns(self, kind: type) -> bool:
        """Return False: every NumPy array belongs to the backend `numpy`."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CupyBackend(DenseBackend):
    """CuPy arrays. They have no read-only views: a UDF that writes to a tile changes the data."""

    def owns(self, kind: type) -> bool:
        """Return whether a class is the CuPy array or a subclass."""
        cupy = device.imported_cupy()
        return cupy is not None and issubclass(kind, cupy.ndarray)

    def holds(self, dtype: np.dtype[Any]) -> bool:
        """Return whether CuPy supports a dtype, in native byte order."""
        return device.has_dtype(dtype)

    def check_dtype(self, dtype: np.dtype[Any]) -> None:
        """Raise if CuPy does not support a dtype."""
        device.check_dtype(dtype)

    def read_only(self, array: Any) -> AnyArray:
        """Return the array, which stays writable."""
        writable: AnyArray = array
        return writable

    def namespace(self) -> Any:
        """Return CuPy."""
        return device.cupy()

    def to_host(self, array: Any) -> AnyArray:
        """Copy an array to the host."""
        return np.asarray(array.get())

    def from_host(self, array: AnyArray) -> Any:
        """Copy an array to the device, in native byte order."""
        values = np.asarray(array)
        device.check_dtype(values.dtype)
        return device.cupy().asarray(values.astype(values.dtype.newbyteorder("="), copy=False))

    def send(self, tile: AnyArray) -> Any:
        """Copy a tile to the device, through pinned memory."""
        from udfdask.backends.device import tile_to_device

        return tile_to_device(tile)

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
        """Return a context in which this process's device is the current device."""
        return device.using_device(own_stream=own_stream)

    def with_flat_nav(self, block: Any, nav_shape: tuple[int, ...]) -> Any:
        """Return a block, with its navigation axes flattened if that needs no copy."""
        if len(nav_shape) == 1 or not block.flags.c_contiguous:
            return block  # reshape would copy the block
        return block.reshape((math.prod(nav_shape), *block.shape[len(nav_shape) :]))

    def has_neighboring_frames(self, block: Any) -> bool:
        """Return True: CuPy reads arrays with any strides."""
        return True


NUMPY = NumpyBackend(name="numpy")
CUPY = CupyBackend(name="cupy", device="cuda", on_device=True)
CUDA = CudaBackend(name="cuda", device="cuda")
