"""Counts what goes to a device that is none and back, and what lies on it."""

from __future__ import annotations

import threading
import weakref
from functools import partial
from typing import Any

import numpy as np

from udfdask.types import AnyArray


class Ledger:
    """Transfers and memory of a device.

    Attributes
    ----------
    to_device, to_host : int
        Number of transfers.
    bytes_to_device, bytes_to_host : int
        Bytes transferred.
    alive, most_alive : int
        Bytes of arrays on the device now, and at most so far.
    pinned : int
        Bytes of pinned memory that have been asked for.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # an array may die while its thread holds it
        self._known: dict[int, tuple[Any, int]] = {}
        self.to_device = self.bytes_to_device = 0
        self.to_host = self.bytes_to_host = 0
        self.alive = self.most_alive = 0
        self.pinned = 0

    def sent(self, nbytes: int) -> None:
        """Count a transfer to the device."""
        with self._lock:
            self.to_device += 1
            self.bytes_to_device += nbytes

    def fetched(self, nbytes: int) -> None:
        """Count a transfer to the host."""
        with self._lock:
            self.to_host += 1
            self.bytes_to_host += nbytes

    def pin(self, nbytes: int) -> None:
        """Count pinned memory."""
        with self._lock:
            self.pinned += nbytes

    def holds(self, array: AnyArray) -> None:
        """Count the memory of an array, of which others may be views, until it is freed."""
        root = array
        while isinstance(root.base, np.ndarray):
            root = root.base
        with self._lock:
            if id(root) in self._known:
                return
            freed = weakref.ref(root, partial(self._freed, id(root)))
            self._known[id(root)] = (freed, root.nbytes)
            self.alive += root.nbytes
            self.most_alive = max(self.most_alive, self.alive)

    def _freed(self, key: int, array: object) -> None:
        """Count memory that has been freed."""
        with self._lock:
            self.alive -= self._known.pop(key)[1]
