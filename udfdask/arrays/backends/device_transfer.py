"""Copies tiles from the host to the device, so that neither waits for the other.

A copy out of pageable memory blocks the thread that asks for it. Here pixels are written into
one of two pinned buffers, from which the device takes them by itself: meanwhile the other buffer
is filled, or the next tile is cut. A buffer is written again once the device has taken what was in
it, so that a thread is never further ahead of the device than its two buffers.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np

from udfdask.arrays.backends.device import check_dtype, cupy, device_number
from udfdask.types import AnyArray

STAGING_BYTES = 8 << 20
"""Bytes of a pinned buffer, at least those of a frame's part of a tile."""


class Transfer:
    """The way of a thread to the device, for work on its current stream."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._buffers = (_Staging(module), _Staging(module))
        self._turn = 0
        self._pinned = True

    def to_device(self, tile: AnyArray) -> Any:
        """Return a copy of a tile, shape (frames, ...), on the device, in native byte order.

        It may be still on its way: what is put on the same stream waits for it.
        """
        check_dtype(tile.dtype)
        dtype = tile.dtype.newbyteorder("=")
        copy = self._module.empty(tile.shape, dtype=dtype)
        if not copy.size:
            return copy
        row = math.prod(tile.shape[1:]) * dtype.itemsize
        step = max(1, STAGING_BYTES // row)
        for start in range(0, len(tile), step):
            self._send(tile[start : start + step], copy[start : start + step])
        return copy

    def _send(self, rows: AnyArray, into: Any) -> None:
        """Copy some rows of a tile."""
        stream = self._module.cuda.get_current_stream()
        self._turn = 1 - self._turn
        staging = self._buffers[self._turn]
        staged = staging.stage(rows, into.dtype) if self._pinned else None
        if staged is None:
            # no memory can be pinned here, or no more of it: a plain copy does
            self._pinned = False
            into.set(np.ascontiguousarray(rows, dtype=into.dtype))
            return
        into.set(staged, stream)
        staging.sent(stream)


class _Staging:
    """A pinned buffer, and when the device has taken what is in it."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._memory: Any = None
        self._size = 0
        self._taken: Any = None

    def stage(self, rows: AnyArray, dtype: np.dtype[Any]) -> AnyArray | None:
        """Return a copy of some rows in the buffer, None if there can be no buffer."""
        if self._taken is not None:
            self._taken.synchronize()
            self._taken = None
        count = rows.size
        if self._size < count * dtype.itemsize:
            self._size = max(STAGING_BYTES, count * dtype.itemsize)
            self._memory = None
            try:
                self._memory = self._module.cuda.alloc_pinned_memory(self._size)
            except self._module.cuda.runtime.CUDARuntimeError:
                self._size = 0
                return None
        staged = np.frombuffer(self._memory, dtype=dtype, count=count).reshape(rows.shape)
        staged[...] = rows
        return staged

    def sent(self, stream: Any) -> None:
        """Note that the device has been told to take what is in the buffer."""
        self._taken = self._module.cuda.Event(disable_timing=True)
        self._taken.record(stream)


_threads = threading.local()


def tile_to_device(tile: AnyArray) -> Any:
    """Return a copy of a tile on the device, made by way of this thread's pinned buffers.

    Called within `using_device`.
    """
    module, number = cupy(), device_number()
    if getattr(_threads, "module", None) is not module:
        # in tests one module after another stands in for CuPy; with the buffers of all of them, of
        # 16 MiB a thread, the test process grew to 4.7 GB
        _threads.module, _threads.transfers = module, {}
    known: dict[int, Transfer] = _threads.transfers
    if number not in known:
        known[number] = Transfer(module)
    return known[number].to_device(tile)
