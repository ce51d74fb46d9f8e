"""CUDA devices: whether there is one, and copies to and from it.

A process uses one device: the first one that `CUDA_VISIBLE_DEVICES` shows, or the one with the
number in the setting `udfdask.cuda-device`.

A copy from pageable memory blocks the calling thread. Here a thread writes pixels into one of two
pinned buffers. While the device copies them from there, it fills the other buffer, or cuts the next
tile. It writes to a buffer again only after the device has copied its contents.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from udfdask.base import config
from udfdask.base.types import AnyArray
from udfdask.errors import DeviceError

_stand_ins: list[Any] = []
"""Modules that replace CuPy in tests; the last one is used."""


@contextlib.contextmanager
def stand_in(module: Any) -> Iterator[None]:
    """Use a module in place of CuPy in all threads of this process, for tests only."""
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
        raise DeviceError(
            "a UDF needs CuPy, but this process sees no CUDA device (CUDA_VISIBLE_DEVICES is "
            f"{os.environ.get('CUDA_VISIBLE_DEVICES')!r}): make one visible, or run without CuPy: "
            "backends='numpy'"
        )
    return module


def n_devices() -> int:
    """Return the number of CUDA devices that this process sees; 0 if it cannot be determined.

    The result is kept: CUDA, too, reads `CUDA_VISIBLE_DEVICES` only once.
    """
    return int(_stand_ins[-1].cuda.runtime.getDeviceCount()) if _stand_ins else _count()


@lru_cache(maxsize=1)
def _count() -> int:
    """Return the number of CUDA devices that CuPy sees, or numba if CuPy is not installed."""
    try:
        try:
            import cupy as module
        except ImportError:
            return _count_with_numba()
        return int(module.cuda.runtime.getDeviceCount())
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
            f"numbered from 0: set a number below {n}, or CUDA_VISIBLE_DEVICES"
        )
    return number


def imported_cupy() -> Any:
    """Return the module CuPy if it was imported, otherwise None: then no array is CuPy's."""
    return _stand_ins[-1] if _stand_ins else sys.modules.get("cupy")


@contextlib.contextmanager
def using_device(*, own_stream: bool) -> Iterator[None]:
    """Use the device of this process in this thread; at the end, wait for the work.

    With `own_stream`, work is queued on the thread's own stream, in parallel with other threads.
    This is for data from the host: data on the device were made on the current stream, which an own
    stream would not wait for.
    """
    module, number = cupy(), device_number()
    with module.cuda.Device(number):
        stream = _of_thread().stream if own_stream else module.cuda.get_current_stream()
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


STAGING_BYTES = 8 << 20
"""Size of a pinned buffer; it is larger if a single frame of a tile needs more."""


class _Thread:
    """The stream of a thread, and its two pinned buffers, from which the current stream copies."""

    def __init__(self, module: Any) -> None:
        self.stream = module.cuda.Stream(non_blocking=True)
        self._module = module
        self._buffers = [np.empty(0, np.uint8)] * 2
        self._copied: list[Any] = [None, None]  # events: the device has copied their contents
        self._current = 0
        self._pinned = True

    def to_device(self, tile: AnyArray) -> Any:
        dtype = tile.dtype.newbyteorder("=")
        copy = self._module.empty(tile.shape, dtype=dtype)
        if copy.size:
            step = max(1, STAGING_BYTES // (math.prod(tile.shape[1:]) * dtype.itemsize))
            for start in range(0, len(tile), step):
                self._send(tile[start : start + step], copy[start : start + step])
        return copy

    def _send(self, rows: AnyArray, into: Any) -> None:
        self._current = which = 1 - self._current
        if self._copied[which] is not None:
            self._copied[which].synchronize()
            self._copied[which] = None
        if self._pinned and self._buffers[which].nbytes < into.nbytes:
            self._enlarge(which, max(STAGING_BYTES, into.nbytes))
        if not self._pinned:
            into.set(np.ascontiguousarray(rows, dtype=into.dtype))
            return
        staged = self._buffers[which][: into.nbytes].view(into.dtype).reshape(rows.shape)
        staged[...] = rows
        stream = self._module.cuda.get_current_stream()
        into.set(staged, stream)
        copied = self._copied[which] = self._module.cuda.Event(disable_timing=True)
        copied.record(stream)

    def _enlarge(self, which: int, size: int) -> None:
        """Pin memory for a buffer; if there is none, copy from pageable memory from now on."""
        self._buffers[which] = np.empty(0, np.uint8)  # frees the old one first
        try:
            memory = self._module.cuda.alloc_pinned_memory(size)
        except self._module.cuda.runtime.CUDARuntimeError:
            self._pinned = False
        else:
            self._buffers[which] = np.frombuffer(memory, np.uint8, size)


_threads = threading.local()


def _of_thread() -> _Thread:
    """Return what this thread has on the device. Buffers for another CuPy or device are freed."""
    place = cupy(), device_number()
    if getattr(_threads, "place", None) != place:
        _threads.place, _threads.held = place, _Thread(place[0])
    held: _Thread = _threads.held
    return held


def tile_to_device(tile: AnyArray) -> Any:
    """Copy a tile, shape (frames, ...), to the device, in native byte order, as `send` does."""
    return _of_thread().to_device(tile)
