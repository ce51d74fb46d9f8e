"""The module that stands in for CuPy, for udfdask and for dask."""

import contextlib
import types

import dask.array.dispatch as lookups
import numpy as np
from dask.array.backends import _numel_arraylike
from dask.sizeof import sizeof

from stand_in.arrays import StandInArray, bare, call, dressed
from stand_in.device import Event, Ledger, PinnedMemory, Stream, current_stream
from udfdask.backends.device import cupy, stand_in

_MISSING = frozenset(
    """
    asmatrix block busday_count busday_offset datetime64 datetime_as_string errstate frompyfunc
    geomspace histogram_bin_edges info insert is_busday isnat longdouble matrix matvec memmap
    nanpercentile nanquantile ndenumerate nditer object_ recarray seterr spacing str_ timedelta64
    vecdot vecmat void matrix_norm multi_dot svdvals vector_norm
    """.split()
)
"""What NumPy has and CuPy has not (13 and 14)."""


@contextlib.contextmanager
def numpy_standing_in_for_cupy(*, n_devices=1, pinned=None):
    """Run code for a CUDA device without one, with NumPy standing in for CuPy in this process.

    There are `pinned` bytes of pinned memory, by default any number. The `ledger` of the module
    counts transfers, and the bytes on the device.
    """
    module = NumpyStandIn(n_devices=n_devices, pinned=pinned)
    with stand_in(module):
        yield module


class CUDARuntimeError(RuntimeError):
    """What CuPy raises when CUDA fails."""


class _Namespace:
    def __init__(self, source, kind):
        self._source = source
        self._kind = kind

    def __getattr__(self, name):
        if name in _MISSING or name.startswith("__"):
            raise AttributeError(f"module 'cupy' has no attribute {name!r}")
        found = getattr(self._source, name)
        if isinstance(found, types.ModuleType):
            return _Namespace(found, self._kind)
        if isinstance(found, type) or not callable(found):
            return found

        def function(*args, **kwargs):
            return call(self._kind, found, *args, **kwargs)

        function.__name__ = name
        return function


class NumpyStandIn(_Namespace):
    """A module that stands in for CuPy, with a device of its own."""

    def __init__(self, *, n_devices=1, pinned=None):
        self.ledger = Ledger()
        facts = {"ledger": self.ledger, "module": self}
        self.ndarray = type("StandInArray", (StandInArray,), facts)
        self.__name__ = "cupy"
        super().__init__(np, self.ndarray)
        self.cuda = _Cuda(self.ledger, n_devices, pinned)

    def __repr__(self):
        return "<NumPy, standing in for CuPy>"

    def __reduce__(self):  # modules are pickled by name
        return (cupy, ())

    def empty(self, shape, dtype=float, order="C"):
        return self._kind(np.empty(shape, dtype))

    def asarray(self, a, dtype=None, order="C"):
        return self._sent(a, dtype, copy=False)

    def array(self, a, dtype=None, copy=True, order="C"):
        return self._sent(a, dtype, copy=True)

    def ascontiguousarray(self, a, dtype=None):
        here = self._sent(a, dtype, copy=False)
        return dressed(self._kind, np.ascontiguousarray(here._array))

    def _sent(self, a, dtype, *, copy):
        if isinstance(a, self._kind):
            return a.astype(a.dtype if dtype is None else dtype, copy=copy)
        parts = bare(self._kind, a) if isinstance(a, (list, tuple)) else a
        values = np.array(parts, dtype=dtype, order="C")
        values = values.astype(values.dtype.newbyteorder("="), copy=False)
        current_stream().run()
        self.ledger.sent(values.nbytes)
        return self._kind(values)


class _Cuda:
    def __init__(self, ledger, n_devices, pinned):
        self.Stream = Stream
        self.Event = Event
        self.get_current_stream = current_stream
        self._ledger = ledger
        self._pinned = pinned
        self.runtime = types.SimpleNamespace(
            getDeviceCount=lambda: n_devices, CUDARuntimeError=CUDARuntimeError
        )

    @contextlib.contextmanager
    def Device(self, number):
        if not 0 <= number < self.runtime.getDeviceCount():
            raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")
        yield

    def alloc_pinned_memory(self, size):
        if self._pinned is not None and self._ledger.pinned + size > self._pinned:
            raise CUDARuntimeError("cudaErrorMemoryAllocation: out of memory")
        self._ledger.pin(size)
        return PinnedMemory(size)


def _module(array):
    return array.module if isinstance(array, StandInArray) else _module(array[0])


# for good: dask asks by type, and there are no such arrays but in tests
lookups.concatenate_lookup.register(
    StandInArray, lambda arrays, axis=0: _module(arrays).concatenate(arrays, axis=axis)
)
lookups.take_lookup.register(StandInArray, lambda a, *args, **kw: _module(a).take(a, *args, **kw))
lookups.tensordot_lookup.register(
    StandInArray, lambda a, b, *args, **kw: _module(a).tensordot(a, b, *args, **kw)
)
lookups.numel_lookup.register(StandInArray, _numel_arraylike)  # as for CuPy
lookups.to_numpy_dispatch.register(StandInArray, lambda array, **_: array.get())
sizeof.register(StandInArray)(lambda array: int(array.nbytes))
