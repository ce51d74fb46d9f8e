"""Threads that can be left behind: Python can exit while a task hangs in one of them."""

from __future__ import annotations

import contextvars
import queue
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Self


class DaemonThreads:
    """Runs each function in the context of its submitter, in one of at most `n` threads."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._work: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._thread_of: dict[Future[Any], int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for _thread in self._threads:
            self._work.put(None)

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Run a function in one of the threads."""
        future: Future[Any] = Future()
        self._work.put((future, contextvars.copy_context(), function, args))
        if len(self._threads) < self._n:
            thread = threading.Thread(target=self._run, name="udfdask-timeout", daemon=True)
            self._threads.append(thread)
            thread.start()
        return future

    def stack_of(self, future: Future[Any]) -> list[str]:
        """Return the stack of the thread that runs a function; empty if none does."""
        thread = self._thread_of.get(future)
        frame = None if thread is None else sys._current_frames().get(thread)
        return [] if frame is None else traceback.format_stack(frame)

    def _run(self) -> None:
        """Run functions until there are no more."""
        while (work := self._work.get()) is not None:
            future, context, function, args = work
            self._thread_of[future] = threading.get_ident()
            try:
                value = context.run(function, *args)
            except BaseException as error:  # noqa: BLE001  # raised by the scheduler
                self._thread_of.pop(future)
                future.set_exception(error)
            else:
                self._thread_of.pop(future)
                future.set_result(value)
            del work, future, context, function, args  # results must not live in idle threads
            value = None
