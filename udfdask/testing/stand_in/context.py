"""Lets the stand-in take the place of CuPy, for udfdask and for dask."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import dask.array.dispatch as lookups
from dask.array.backends import _numel_arraylike
from dask.sizeof import sizeof

from udfdask.arrays.backends.device import stand_in
from udfdask.testing.stand_in.arrays import StandInArray
from udfdask.testing.stand_in.module import NumpyStandIn


@contextlib.contextmanager
def numpy_standing_in_for_cupy(
    *, n_devices: int = 1, pinned: int | None = None
) -> Iterator[NumpyStandIn]:
    """Run code for a CUDA device without one, with NumPy standing in for CuPy in this process.

    Parameters
    ----------
    n_devices : int
        Number of devices that the process seems to see.
    pinned : int or None
        Bytes of pinned memory that there are; None for any number.

    Yields
    ------
    NumpyStandIn
        The module; its `ledger` counts transfers, and the bytes on the device.

    Examples
    --------
    >>> import numpy as np
    >>> from udfdask.testing import numpy_standing_in_for_cupy
    >>> with numpy_standing_in_for_cupy() as cupy:
    ...     x = cupy.asarray(np.arange(4.0))
    ...     total = float(x.sum())
    >>> total, cupy.ledger.to_device, cupy.ledger.bytes_to_host
    (6.0, 1, 8)
    >>> np.asarray(x)
    Traceback (most recent call last):
    ...
    TypeError: Implicit conversion to a NumPy array is not allowed. ...
    """
    module = NumpyStandIn(n_devices=n_devices, pinned=pinned)
    with stand_in(module):
        yield module


def _module(array: Any) -> Any:
    """Return the module of an array, or of the first of several."""
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
