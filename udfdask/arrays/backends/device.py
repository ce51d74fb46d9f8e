"""The CUDA device of this process, and CuPy on it.

A process uses one device: the first one that `CUDA_VISIBLE_DEVICES` shows, or the one with the
number in the setting `udfdask.cuda-device`.
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
"""Modules that replace CuPy in tests; the last one is used."""


@contextlib.contextmanager
def stand_in(module: Any) -> Iterator[None]:
    """Use a module in place of CuPy in all threads of this process, for tests only.

    There is no other way to replace CuPy. The module of the tests copies from pinned memory as late
    as it may, so that a buffer that is overwritten too early gives wrong numbers there too.
    """
    _stand_ins.append(module)
    try:
        yield
    finally:
        _stand_ins.remove(module)


def cupy() -> Any:
    """Return the module CuPy; raise if it is not installed or finds no device."""
    if _stand_ins:
        return _stand_ins[-1]
    try:
        import cupy as module
    except ImportError:
        raise DeviceError(
            "a UDF needs CuPy, but CuPy is not installed: pip install 'udfdask[cupy]', for "
            "CUDA 12 'udfdask[cupy-cuda12x]'; or run without it: backends='numpy'"
        ) from None
    if not n_devices():
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        raise DeviceError(
            "a UDF needs CuPy, but this process sees no CUDA device (CUDA_VISIBLE_DEVICES is "
            f"{'not set' if visible is None else repr(visible)}): run on a machine with a device "
            "and a driver, make the device visible, or run without CuPy: backends='numpy'"
        )
    return module


def n_devices() -> int:
    """Return the number of CUDA devices that this process sees; 0 if it cannot be determined.

    Counting makes no context on a device. The result is kept: CUDA, too, reads
    `CUDA_VISIBLE_DEVICES` only once.
    """
    return int(_stand_ins[-1].cuda.runtime.getDeviceCount()) if _stand_ins else _count()


@lru_cache(maxsize=1)
def _count() -> int:
    """Return the number of CUDA devices that CuPy sees, or numba if CuPy is not installed."""
    try:
        import cupy as module
    except ImportError:
        module = None
    try:
        return _count_with_numba() if module is None else int(module.cuda.runtime.getDeviceCount())
    except Exception:  # noqa: BLE001  # no driver, an old driver, a broken driver: no device
        return 0


def _count_with_numba() -> int:
    """Return the number of CUDA devices, which UDFs with `BACKEND_CUDA` can use without CuPy."""
    from numba.cuda.cudadrv.driver import driver

    count: Any = driver.get_device_count
    return int(count())


def device_number() -> int:
    """Return the number of this process's device, among the devices that the process sees."""
    number, n = config.cuda_device(), n_devices()
    if number >= n > 0:
        raise DeviceError(
            f"config udfdask.cuda-device is {number}, but this process sees {n} CUDA device(s), "
            f"numbered from 0: set a number below {n}, or make more devices visible with "
            "CUDA_VISIBLE_DEVICES"
        )
    return number


def imported_cupy() -> Any:
    """Return the module CuPy if it was imported, otherwise None: then no array is CuPy's."""
    return _stand_ins[-1] if _stand_ins else sys.modules.get("cupy")


def has_dtype(dtype: np.dtype[Any]) -> bool:
    """Return whether CuPy supports a dtype; data of the other byte order are swapped."""
    return dtype.char in _CHARACTERS


def check_dtype(dtype: np.dtype[Any]) -> None:
    """Raise if CuPy does not support a dtype."""
    if not has_dtype(dtype):
        raise DeviceError(
            f"CuPy has no arrays of dtype {dtype}, only of booleans, integers, and floats and "
            "complex numbers of at most double precision: convert the data, or run without CuPy: "
            "backends='numpy'"
        )


_CHARACTERS = frozenset("?bhilqBHILQefdFD")

_streams = threading.local()


@contextlib.contextmanager
def using_device(*, own_stream: bool) -> Iterator[None]:
    """Use the device of this process in this thread; at the end, wait for the work.

    With `own_stream`, work is queued on the thread's own stream, in parallel with other threads.
    This is for data from the host. Data on the device need the current stream, by default the one
    that all threads share, because they were made on it: an own stream would not wait for them.
    """
    module, number = cupy(), device_number()
    with module.cuda.Device(number):
        stream = _own_stream(module, number) if own_stream else module.cuda.get_current_stream()
        with stream:
            try:
                yield
            except BaseException:
                # a copy may still read the buffers; the first error is the one to report
                with contextlib.suppress(Exception):
                    stream.synchronize()
                raise
            # tasks on other streams may use the results next; errors of the device appear here
            stream.synchronize()


def _own_stream(module: Any, number: int) -> Any:
    """Return the stream of this thread on a device."""
    streams = _streams.__dict__.setdefault("by_device", {})
    if (module, number) not in streams:
        streams[module, number] = module.cuda.Stream(non_blocking=True)
    return streams[module, number]
