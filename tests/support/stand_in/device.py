"""A device that is none: it counts what goes there and back, and copies as late as it can.

Copies out of pinned memory wait until somebody waits for their stream. Everything else happens at
once, after what waits on the current stream of the thread, as kernels on a real stream do. A
stream that is not current is not looked at.
"""

import threading
import weakref
from collections import deque
from functools import partial

import numpy as np

_current = threading.local()


class PinnedMemory(bytearray):
    """Memory of the host from which the device takes data by itself."""


class Ledger:
    """Numbers of transfers and their bytes; bytes of arrays on the device, and of pinned memory."""

    def __init__(self):
        self._lock = threading.RLock()  # an array may die while its thread holds it
        self._known = {}
        self.to_device = self.bytes_to_device = 0
        self.to_host = self.bytes_to_host = 0
        self.alive = self.most_alive = 0
        self.pinned = 0

    def sent(self, nbytes):
        with self._lock:
            self.to_device += 1
            self.bytes_to_device += nbytes

    def fetched(self, nbytes):
        with self._lock:
            self.to_host += 1
            self.bytes_to_host += nbytes

    def pin(self, nbytes):
        with self._lock:
            self.pinned += nbytes

    def holds(self, array):
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

    def _freed(self, key, _):
        with self._lock:
            self.alive -= self._known.pop(key)[1]


class Stream:
    """What a thread has asked the device for, in order."""

    def __init__(self, null=False, non_blocking=False):
        self._waiting = deque()
        self._lock = threading.RLock()
        self.asked = self._done = 0

    def put(self, work):
        """Take work that the device does in its own time: as late as possible."""
        with self._lock:
            self._waiting.append(work)
            self.asked += 1

    def run(self, until=None):
        """Do what has been asked for, by default all of it."""
        with self._lock:
            while self._waiting and (until is None or self._done < until):
                self._waiting.popleft()()
                self._done += 1

    synchronize = run

    def __enter__(self):
        _stack().append(self)
        return self

    def __exit__(self, *error):
        _stack().pop()


class Event:
    def __init__(self, block=False, disable_timing=False):
        self._stream = None
        self._number = 0

    def record(self, stream=None):
        self._stream = current_stream() if stream is None else stream
        self._number = self._stream.asked

    def synchronize(self):
        if self._stream is not None:
            self._stream.run(self._number)


NULL = Stream(null=True)


def current_stream():
    return _stack()[-1]


def _stack():
    return _current.__dict__.setdefault("stack", [NULL])
