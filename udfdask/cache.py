"""Values made once per process and shared by all its tasks: mask stacks, plans of transforms.

Nothing tells a worker when a computation is over. So the values of the last few runs are kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any


class OncePerProcess:
    """The values of the last `most` keys, each made by the first thread that asks for it.

    Values are shared between threads, so that nobody may change them.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the value of a key; other threads that want it wait while it is made.

        What `make` raises is raised here and nothing is kept.
        """
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            while len(self._entries) > self._most:
                self._entries.popitem(last=False)
        with entry.lock:
            if not entry.made:
                entry.value = make()
                entry.made = True
        return entry.value

    def __reduce__(self) -> tuple[Any, ...]:  # what is shared stays in its process
        return (OncePerProcess, (self._most,))


class _Entry:
    """A value, or the place where one thread is making it."""

    __slots__ = ("lock", "made", "value")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.made = False
        self.value: Any = None
