"""Arrays on a device that is none: NumPy arrays that behave as CuPy's do."""

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from stand_in.device import PinnedMemory, current_stream
from udfdask.backends.device import cupy

DTYPES = "?bhilqBHILQefdFD"
"""Characters of the dtypes that CuPy has."""

NO_ARGUMENTS = frozenset({"where", "initial", "like", "subok"})
"""Arguments of NumPy's functions that CuPy's do not take."""

_METHODS = frozenset(
    """
    all any argmax argmin argsort astype clip conj copy cumprod cumsum diagonal dot fill flatten
    max mean min nonzero prod ravel repeat round searchsorted sort squeeze std sum swapaxes take
    trace transpose var view
    """.split()
)
_FACTS = frozenset("dtype ndim size nbytes itemsize strides".split())


class StandInArray(NDArrayOperatorsMixin):
    """An array of NumPy's that is taken for one on a device.

    Each module makes a subclass, with its `ledger` and itself as `module`.
    """

    __array_priority__ = 100

    def __init__(self, array):
        if array.dtype.char not in DTYPES or not array.dtype.isnative:
            raise ValueError(f"Unsupported dtype {array.dtype}")
        self._array = array
        self.ledger.holds(array)

    def __array__(self, *args, **kwargs):
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct "
            "a NumPy array explicitly."
        )

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if method != "__call__":
            return NotImplemented
        return call(type(self), ufunc, *inputs, **kwargs)

    def __array_function__(self, func, types, args, kwargs):
        name = f"{func.__module__}.{func.__name__}".removeprefix("numpy.")
        found = self.module
        for part in name.split("."):
            found = getattr(found, part, None)
        return NotImplemented if found is None else found(*args, **kwargs)

    def __getattr__(self, name):
        if name in _FACTS:
            return getattr(self._array, name)
        if name not in _METHODS:
            raise AttributeError(f"CuPy's arrays have no attribute {name!r} here")
        method = getattr(np.ndarray, name)
        return lambda *args, **kwargs: call(type(self), method, self, *args, **kwargs)

    def reshape(self, *shape, order="C"):
        return call(type(self), np.ndarray.reshape, self, *shape, order=order)

    @property
    def shape(self):
        return self._array.shape

    @shape.setter
    def shape(self, shape):
        self._array.shape = shape

    @property
    def T(self):
        return self.transpose()

    @property
    def real(self):
        return type(self)(self._array.real)

    @property
    def imag(self):
        return type(self)(np.asarray(self._array.imag))

    @property
    def flags(self):
        return _Flags(self._array)

    def get(self, stream=None, order="C", out=None):
        (current_stream() if stream is None else stream).run()
        self.ledger.fetched(self._array.nbytes)
        copy = self._array.copy(order="C")
        if out is None:
            return copy
        out[...] = copy
        return out

    def set(self, array, stream=None):
        own = self._array
        if type(array) is not np.ndarray:
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        if array.dtype != own.dtype:
            raise TypeError(f"{array.dtype} array cannot be set to {own.dtype} array")
        if array.shape != own.shape:
            raise ValueError(f"Shape mismatch. Old shape: {own.shape}, new shape: {array.shape}")
        if not own.flags.c_contiguous:
            raise RuntimeError("Cannot set to non-contiguous array")
        stream = current_stream() if stream is None else stream
        self.ledger.sent(array.nbytes)
        if is_pinned(array):
            stream.put(lambda: np.copyto(own, array))
        else:
            stream.run()
            own[...] = array

    def item(self, *args):
        return self.get().item(*args)

    def tolist(self):
        return self.get().tolist()

    def __getitem__(self, index):
        place = self._index(index)
        parts = place if isinstance(place, tuple) else (place,)
        if any(isinstance(part, (np.ndarray, list)) for part in parts):
            current_stream().run()  # a copy; views are made without the device
        elif Ellipsis not in parts:
            place = (*parts, Ellipsis)  # one element is a view too, where NumPy gives a number
        return type(self)(np.asarray(self._array[place]))

    def __setitem__(self, index, value):
        current_stream().run()
        self._array[self._index(index)] = bare(type(self), value)

    def _index(self, index):
        parts = index if isinstance(index, tuple) else (index,)
        found = []
        for part in parts:
            if isinstance(part, (np.ndarray, list)):
                self.ledger.sent(np.asarray(part).nbytes)
            found.append(part._array if isinstance(part, StandInArray) else part)
        return tuple(found) if isinstance(index, tuple) else found[0]

    def __len__(self):
        return len(self._array)

    def __iter__(self):
        return (self[k] for k in range(len(self)))

    def __bool__(self):
        return bool(self.get())

    def __int__(self):
        return int(self.get())

    def __float__(self):
        return float(self.get())

    def __complex__(self):
        return complex(self.get())

    def __index__(self):
        return int(self.get().__index__())

    def __repr__(self):
        return f"StandInArray({self._array!r})"

    def __reduce__(self):
        return (again, (self.get(),))


class _Flags:
    def __init__(self, array):
        self.c_contiguous = array.flags.c_contiguous
        self.f_contiguous = array.flags.f_contiguous
        self.owndata = array.flags.owndata


def again(array):
    return cupy().asarray(array)


def is_pinned(array):
    base = array
    while isinstance(base, (np.ndarray, memoryview)):
        base = base.base if isinstance(base, np.ndarray) else base.obj
    return isinstance(base, PinnedMemory)


def call(kind, function, *args, **kwargs):
    """Return what a function of NumPy's makes of arrays on the device, as such arrays."""
    refused = NO_ARGUMENTS & {name for name, value in kwargs.items() if value is not None}
    if refused:
        raise TypeError(f"CuPy's {function.__name__} takes no argument {sorted(refused)}")
    current_stream().run()
    given = {name: bare(kind, value) for name, value in kwargs.items()}
    with np.errstate(all="ignore"):  # a device does not say what came of a division by 0
        returned = function(*(bare(kind, value) for value in args), **given)
    out = kwargs.get("out")
    if out is not None:
        return out[0] if isinstance(out, tuple) else out
    return dressed(kind, returned)


def bare(kind, value):
    """Return an argument as NumPy takes it; arrays of the host are refused."""
    if isinstance(value, kind):
        return value._array
    if isinstance(value, (np.ndarray, StandInArray)):
        raise TypeError(f"Unsupported type {type(value)}")
    if type(value) in (list, tuple):
        return type(value)(bare(kind, v) for v in value)
    return value


def dressed(kind, value):
    """Return what NumPy gives as CuPy does: numbers are arrays without axes."""
    if isinstance(value, (np.ndarray, np.generic)):
        return kind(np.asarray(value))
    if isinstance(value, (list, tuple)):
        parts = [dressed(kind, v) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value
