"""Copy tiles from the host to the device asynchronously.

A copy from pageable memory blocks the calling thread. Here pixels are written into one of two
pinned buffers, and the device copies them from there on its own. Meanwhile the thread fills the
other buffer, or cuts the next tile. It writes to a buffer again only after the device has copied
its contents, so that a thread is at most two buffers ahead of the device.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np

from udfdask.arrays.backends.device import check_dtype, cupy, device_number
from udfdask.types import AnyArray

STAGING_BYTES = 8 << 20
"""Size of a pinned buffer; it is larger if a single frame of a tile needs more."""


class Transfer:
    """The two pinned buffers of a thread; copies run on the current stream."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._buffers = (_Staging(module), _Staging(module))
        self._current = 0
        self._pinned = True

    def to_device(self, tile: AnyArray) -> Any:
        """Copy a tile, shape (frames, ...), to the device, in native byte order.

        The copy may be unfinished on return: later work on the same stream waits for it.
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
        self._current = 1 - self._current
        staging = self._buffers[self._current]
        staged = staging.stage(rows, into.dtype) if self._pinned else None
        if staged is None:
            # no memory can be pinned, or no more: copy from pageable memory from now on
            self._pinned = False
            into.set(np.ascontiguousarray(rows, dtype=into.dtype))
            return
        into.set(staged, stream)
        staging.record_copy(stream)


class _Staging:
    """A pinned buffer, with the event at which the device has copied its contents."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._memory: Any = None
        self._size = 0
        self._copied: Any = None

    def stage(self, rows: AnyArray, dtype: np.dtype[Any]) -> AnyArray | None:
        """Copy some rows into the buffer; return None if no memory can be pinned."""
        if self._copied is not None:
            self._copied.synchronize()
            self._copied = None
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

    def record_copy(self, stream: Any) -> None:
        """Record the event that follows the copy on the stream."""
        self._copied = self._module.cuda.Event(disable_timing=True)
        self._copied.record(stream)


_threads = threading.local()


def tile_to_device(tile: AnyArray) -> Any:
    """Copy a tile to the device through this thread's pinned buffers.

    Call it within `using_device`.
    """
    module, number = cupy(), device_number()
    if getattr(_threads, "module", None) is not module:
        # tests replace CuPy with one module after another; when all of them kept their 16 MiB of
        # buffers per thread, the test process grew to 4.7 GB
        _threads.module, _threads.transfers = module, {}
    transfers: dict[int, Transfer] = _threads.transfers
    if number not in transfers:
        transfers[number] = Transfer(module)
    return transfers[number].to_device(tile)
