"""Make values once per process and share them between its tasks: mask stacks, plans of transforms.

A worker does not know when a computation ends, so the cache keeps the last few values.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from types import SimpleNamespace
from typing import Any


class OncePerProcess:
    """The values of the last `most` keys, which threads share: do not change them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, SimpleNamespace] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the value of a key, which the first thread that needs it makes."""
        with self._lock:
            new = SimpleNamespace(lock=threading.Lock(), made=False, value=None)
            entry = self._entries.setdefault(key, new)
            self._entries.move_to_end(key)
            while len(self._entries) > self._most:
                self._entries.popitem(last=False)
        with entry.lock:
            if not entry.made:
                entry.value = make()
                entry.made = True
        return entry.value

    def __reduce__(self) -> tuple[Any, ...]:  # values are not sent to other processes
        return (OncePerProcess, (self._most,))
