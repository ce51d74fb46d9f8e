"""End a command cleanly after SIGTERM or SIGHUP: `kill`, end of a batch job, closed terminal.

By default, Python ends without informing the processes of ``--scheduler processes``. They would
wait for more tasks forever, keep their memory, and keep their pipes open for other programs.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_NAMES = ("SIGTERM", "SIGHUP")  # Windows has no SIGHUP

SECONDS = 5
"""Time limit for the rest of the cleanup; after it, the kernel ends the process by ``SIGALRM``."""


class _AskedToEndError(BaseException):
    """Leave all running code, like Ctrl-C does, so that hidden files are removed."""


@contextmanager
def ending_when_asked() -> Iterator[None]:
    """After a signal to end, end the started processes and remove hidden files.

    The process then ends immediately by the same signal; without this, Python would wait for tasks
    in threads. A second signal ends the process without any cleanup. Signals that are already
    ignored (`nohup`) or handled are not changed.
    """
    known = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    ours = [number for number in known if signal.getsignal(number) is signal.SIG_DFL]
    if threading.current_thread() is not threading.main_thread():
        ours = []  # Python allows signal handlers only in the main thread
    asked: list[int] = []

    def leave(number: int, _: Any) -> None:
        for each in ours:
            signal.signal(each, signal.SIG_DFL)
        asked.append(number)
        _end_processes()  # otherwise dask waits for their tasks
        # if a process ends while it writes a result, the pool waits for the rest: limit the time
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
    """End the processes that this process has started."""
    for process in multiprocessing.active_children():
        process.terminate()
