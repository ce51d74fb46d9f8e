"""Streams of a device that is none: copies out of pinned memory wait until somebody waits.

Everything else happens at once, after what waits on the current stream of the thread, as kernels
on a real stream do. A stream that is not current is not looked at.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Self

_current = threading.local()


class Stream:
    """What a thread has asked the device for, in order."""

    def __init__(self, null: bool = False, non_blocking: bool = False) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._lock = threading.RLock()
        self._asked = self._done = 0

    def put(self, work: Callable[[], None]) -> None:
        """Take work that the device does in its own time: as late as possible."""
        with self._lock:
            self._waiting.append(work)
            self._asked += 1

    def run(self, until: int | None = None) -> None:
        """Do what has been asked for, by default all of it."""
        with self._lock:
            while self._waiting and (until is None or self._done < until):
                self._waiting.popleft()()
                self._done += 1

    @property
    def asked(self) -> int:
        """Number of pieces of work so far."""
        return self._asked

    def synchronize(self) -> None:
        """Wait for all work."""
        self.run()

    def record(self, event: Event | None = None) -> Event:
        """Return an event that happens when the work so far is done."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let further work wait for an event."""
        self.put(event.synchronize)

    def __enter__(self) -> Self:
        _stack().append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _stack().pop()


class Event:
    """A point in the work of a stream."""

    def __init__(self, block: bool = False, disable_timing: bool = False) -> None:
        self._stream: Stream | None = None
        self._number = 0

    def record(self, stream: Stream | None = None) -> None:
        """Stand behind the work of a stream so far."""
        self._stream = current_stream() if stream is None else stream
        self._number = self._stream.asked

    def synchronize(self) -> None:
        """Wait for that work."""
        if self._stream is not None:
            self._stream.run(self._number)


NULL = Stream(null=True)


def current_stream() -> Stream:
    """Return the stream of this thread."""
    return _stack()[-1]


def _stack() -> list[Stream]:
    """Return the streams that this thread is in, the default one first."""
    stack: list[Stream] = _current.__dict__.setdefault("stack", [NULL])
    return stack
