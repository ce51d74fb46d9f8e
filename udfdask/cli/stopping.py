"""A command that the system asks to end: by `kill`, at the end of a batch job, or with a terminal.

Python then ends without a word to the processes of ``--scheduler processes``. They would wait for
more tasks for ever, with all their memory, and with the pipes that others read to their end.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_NAMES = ("SIGTERM", "SIGHUP")  # Windows has no second one

SECONDS = 5
"""How long all else may take then; the kernel ends the process after that, by ``SIGALRM``."""


class _AskedToEndError(BaseException):
    """Leaves everything that runs, as Ctrl-C does, so that hidden files are removed."""


@contextmanager
def ending_when_asked() -> Iterator[None]:
    """End with the processes that were started, and without hidden files, when asked to end.

    The process then ends by the same signal, at once: Python alone would wait for tasks in threads.
    A second signal does so whatever still goes on. Signals that somebody ignores (`nohup`) or
    handles already stay as they are.
    """
    known = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    ours = [number for number in known if signal.getsignal(number) is signal.SIG_DFL]
    if threading.current_thread() is not threading.main_thread():
        ours = []  # Python does not allow it
    asked: list[int] = []

    def leave(number: int, _: Any) -> None:
        for each in ours:
            signal.signal(each, signal.SIG_DFL)
        asked.append(number)
        _end_processes()  # dask waits for what they do
        # a process that is ended while it writes a result leaves a pool that waits for the rest
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS)
        raise _AskedToEndError

    for number in ours:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
        if asked:
            _end_processes()  # a thread may have started more
            os.kill(os.getpid(), asked[0])


def _end_processes() -> None:
    """End the processes that this one has started."""
    for process in multiprocessing.active_children():
        process.terminate()
