"""Lets the stand-in take the place of CuPy, for udfdask and for dask."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import dask.array.dispatch as lookups
from dask.array.backends import _numel_arraylike
from dask.sizeof import sizeof

from stand_in.arrays import StandInArray
from stand_in.module import NumpyStandIn
from udfdask.backends.device import stand_in


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
