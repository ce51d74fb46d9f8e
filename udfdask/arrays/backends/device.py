"""The CUDA device of this process, and CuPy on it.

One process uses one device. Which one that is, a worker is told by `CUDA_VISIBLE_DEVICES`, or by
the setting `udfdask.cuda-device`.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from udfdask import config
from udfdask.errors import DeviceError

_stand_ins: list[Any] = []
"""Modules that stand in for CuPy in tests, the last one in charge."""


@contextlib.contextmanager
def stand_in(module: Any) -> Iterator[None]:
    """Let a module stand in for CuPy in all threads of this process; for tests alone."""
    _stand_ins.append(module)
    try:
        yield
    finally:
        _stand_ins.remove(module)


def cupy() -> Any:
    """Return the module CuPy; raise if it is not installed, or if there is no device for it."""
    if _stand_ins:
        return _stand_ins[-1]
    try:
        import cupy as module
    except ImportError:
        raise DeviceError(
            "CuPy was asked for, but it is not installed: pip install 'udfdask[cupy]', or leave it "
            "out with backends='numpy'"
        ) from None
    if not n_devices():
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        raise DeviceError(
            "CuPy was asked for, but this process sees no CUDA device (CUDA_VISIBLE_DEVICES is "
            f"{'not set' if visible is None else repr(visible)}): run on a machine with a device "
            "and a driver, make the device visible, or leave CuPy out with backends='numpy'"
        )
    return module


def n_devices() -> int:
    """Return how many CUDA devices this process may use; 0 where that cannot be found out.

    No device is touched for it. It is found out once, as CUDA reads `CUDA_VISIBLE_DEVICES` once.
    """
    return int(_stand_ins[-1].cuda.runtime.getDeviceCount()) if _stand_ins else _count()


@lru_cache(maxsize=1)
def _count() -> int:
    """Return how many CUDA devices this process may use."""
    try:
        import cupy as module
    except ImportError:
        module = None
    try:
        return _count_with_numba() if module is None else int(module.cuda.runtime.getDeviceCount())
    except Exception:  # noqa: BLE001  # no driver, an old one, a broken one: no device
        return 0


def _count_with_numba() -> int:
    """Return the number of CUDA devices; raise what numba raises."""
    from numba.cuda.cudadrv.driver import driver

    counted: Any = driver.get_device_count  # makes no context on a device
    return int(counted())


def device_number() -> int:
    """Return the device of this process, as CUDA numbers those that it may use."""
    number, n = config.cuda_device(), n_devices()
    if number >= n > 0:
        raise DeviceError(
            f"config udfdask.cuda-device is {number}, but this process sees {n} CUDA device(s), "
            "numbered from 0: CUDA_VISIBLE_DEVICES decides which, and they are counted anew there"
        )
    return number


def imported_cupy() -> Any:
    """Return the module CuPy if it has been imported, else None: nothing is one of its arrays."""
    return _stand_ins[-1] if _stand_ins else sys.modules.get("cupy")


def has_dtype(dtype: np.dtype[Any]) -> bool:
    """Return whether CuPy has arrays of a dtype, once it is in native byte order."""
    return dtype.newbyteorder("=").char in _CHARACTERS


def check_dtype(dtype: np.dtype[Any]) -> None:
    """Raise if CuPy has no arrays of a dtype."""
    if not has_dtype(dtype):
        raise DeviceError(
            f"CuPy has no arrays of dtype {dtype}, only of booleans, integers, and floats and "
            "complex numbers of at most double precision: convert the data, or leave CuPy out "
            "with backends='numpy'"
        )


_CHARACTERS = frozenset("?bhilqBHILQefdFD")

_streams = threading.local()


@contextlib.contextmanager
def using_device(*, own_stream: bool) -> Iterator[None]:
    """Make the device of this process the current one, in this thread, until its work is done.

    With `own_stream` work is put on a stream of the thread, beside that of other threads: for tasks
    whose data come from the host. Else it goes to the stream that is current, by default the one
    that all threads share, where it waits for what has made the data.
    """
    module, number = cupy(), device_number()
    with module.cuda.Device(number):
        stream = _own_stream(module, number) if own_stream else module.cuda.get_current_stream()
        with stream:
            try:
                yield
            except BaseException:
                # buffers that a copy still reads must not be handed on; what went wrong counts
                with contextlib.suppress(Exception):
                    stream.synchronize()
                raise
            # other tasks, on other streams, may take what has been made; and what fails fails here
            stream.synchronize()


def _own_stream(module: Any, number: int) -> Any:
    """Return the stream of this thread on a device."""
    known = _streams.__dict__.setdefault("of", {})
    if (module, number) not in known:
        known[module, number] = module.cuda.Stream(non_blocking=True)
    return known[module, number]
