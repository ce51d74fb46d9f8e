"""The module that stands in for CuPy."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from stand_in.arrays import (
    PinnedMemory,
    StandInArray,
    bare,
    call,
    dressed,
)
from stand_in.ledger import Ledger
from stand_in.streams import Event, Stream, current_stream
from udfdask.backends.device import cupy
from udfdask.types import AnyArray

_MISSING = frozenset(
    """
    asmatrix block busday_count busday_offset datetime64 datetime_as_string errstate frompyfunc
    geomspace histogram_bin_edges info insert is_busday isnat longdouble matrix matvec memmap
    nanpercentile nanquantile ndenumerate nditer object_ recarray seterr spacing str_ timedelta64
    vecdot vecmat void matrix_norm multi_dot svdvals vector_norm
    """.split()
)
"""What NumPy has and CuPy has not (13 and 14)."""


class CUDARuntimeError(RuntimeError):
    """What CuPy raises when CUDA fails."""


class _Namespace:
    """A module of NumPy's, the functions of which take and give arrays on the device."""

    def __init__(self, source: types.ModuleType, kind: type[StandInArray]) -> None:
        self._source = source
        self._kind = kind

    def __getattr__(self, name: str) -> Any:
        if name in _MISSING or name.startswith("__"):
            raise AttributeError(f"module 'cupy' has no attribute {name!r}")
        found = getattr(self._source, name)
        if isinstance(found, types.ModuleType):
            return _Namespace(found, self._kind)
        if isinstance(found, type) or not callable(found):
            return found

        def function(*args: Any, **kwargs: Any) -> Any:
            return call(self._kind, found, *args, **kwargs)

        function.__name__ = name
        return function


class NumpyStandIn(_Namespace):
    """A module that stands in for CuPy, with a device of its own.

    Parameters
    ----------
    n_devices : int
        Number of devices that it claims to see.
    pinned : int or None
        Bytes that can be pinned; None for any number.

    Attributes
    ----------
    ledger : Ledger
        Transfers and memory of the device.
    """

    def __init__(self, *, n_devices: int = 1, pinned: int | None = None) -> None:
        self.ledger = Ledger()
        facts = {"ledger": self.ledger, "module": self}
        self.ndarray: type[StandInArray] = type("StandInArray", (StandInArray,), facts)
        self.__name__ = "cupy"
        super().__init__(np, self.ndarray)
        self.cuda = _Cuda(self.ledger, n_devices, pinned)

    def __repr__(self) -> str:
        return "<NumPy, standing in for CuPy>"

    def __reduce__(self) -> tuple[Any, ...]:  # modules are pickled by name
        return (cupy, ())

    def empty(self, shape: Any, dtype: Any = float, order: str = "C") -> Any:
        """Return memory on the device, for which nothing has to be done there."""
        return self._kind(np.empty(shape, dtype))

    def asarray(self, a: Any, dtype: Any = None, order: str = "C") -> Any:
        """Return an array on the device: itself, or a copy of one of the host."""
        return self._sent(a, dtype, copy=False)

    def array(self, a: Any, dtype: Any = None, copy: bool = True, order: str = "C") -> Any:
        """Return a new array on the device."""
        return self._sent(a, dtype, copy=True)

    def ascontiguousarray(self, a: Any, dtype: Any = None) -> Any:
        """Return an array on the device in C order."""
        here = self._sent(a, dtype, copy=False)
        return dressed(self._kind, np.ascontiguousarray(here._array))

    def _sent(self, a: Any, dtype: Any, *, copy: bool) -> Any:
        """Return an array on the device."""
        if isinstance(a, self._kind):
            return a.astype(a.dtype if dtype is None else dtype, copy=copy)
        parts = bare(self._kind, a) if isinstance(a, (list, tuple)) else a
        values = np.array(parts, dtype=dtype, order="C")
        values = values.astype(values.dtype.newbyteorder("="), copy=False)
        current_stream().run()
        self.ledger.sent(values.nbytes)
        return self._kind(values)

    def asnumpy(self, a: Any, stream: Any = None, order: str = "C") -> AnyArray:
        """Return an array on the host."""
        return a.get(stream=stream) if isinstance(a, self._kind) else np.asarray(a)

    def get_array_module(self, *args: Any) -> Any:
        """Return this module if one of the arrays is on the device, else NumPy."""
        return self if any(isinstance(a, self._kind) for a in args) else np


class _Cuda:
    """What stands in for `cupy.cuda`."""

    def __init__(self, ledger: Ledger, n_devices: int, pinned: int | None) -> None:
        self.Stream = Stream
        self.Event = Event
        self.get_current_stream = current_stream
        self._ledger = ledger
        self._pinned = pinned
        self.runtime = types.SimpleNamespace(
            getDeviceCount=lambda: n_devices,
            memGetInfo=lambda: (8 << 30, 8 << 30),
            CUDARuntimeError=CUDARuntimeError,
        )

    @contextlib.contextmanager
    def Device(self, number: int) -> Iterator[None]:
        """Make a device the current one."""
        if not 0 <= number < self.runtime.getDeviceCount():
            raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")
        yield

    def alloc_pinned_memory(self, size: int) -> PinnedMemory:
        """Return memory out of which copies are made when the device gets round to it."""
        if self._pinned is not None and self._ledger.pinned + size > self._pinned:
            raise CUDARuntimeError("cudaErrorMemoryAllocation: out of memory")
        self._ledger.pin(size)
        return PinnedMemory(size)
