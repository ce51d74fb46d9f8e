"""Count the threads of this process that work during a function call.

The count uses context switches instead of times, because times depend on the load of the machine. A
sleeping thread has no context switches, and a working thread has at least one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

THREADS = Path("/proc/self/task")
"""Folder where Linux describes the threads of this process; other systems do not have it."""

PAUSE = 0.005
"""Seconds between two looks at threads that are awake; threads of OpenBLAS spin for 0.1 s."""

LOOKS = 400
"""Number of looks before threads that never sleep, such as unrelated work, are ignored."""


def helpers_of(run: Callable[[], Any], times: int = 3) -> int:
    """Return the number of other threads that work in each call of `run`.

    Python threads count if `run` starts them. On Linux, threads of libraries such as BLAS, OpenMP
    and numba count as well, no matter what started them.
    """
    helping: list[set[int]] = []
    with _noting_starts() as started:
        for _ in range(times):
            before = _switches()
            run()
            after = _switches()
            helping.append({thread for thread in after if after[thread] != before.get(thread)})
    # a thread of unrelated work does not work in each call
    return len(started) + len(set.intersection(*helping))


@contextmanager
def _noting_starts() -> Iterator[list[threading.Thread]]:
    """Yield a list of the Python threads that this thread starts inside the `with` block."""
    here, start = threading.get_ident(), threading.Thread.start
    started: list[threading.Thread] = []

    def noting(thread: threading.Thread) -> None:
        if threading.get_ident() == here:
            started.append(thread)
        start(thread)

    with patch.object(threading.Thread, "start", noting):
        yield started


def _switches() -> dict[int, int]:
    """Wait until threads of libraries sleep; return the number of context switches of each."""
    counts: dict[int, int] = {}
    for _ in range(LOOKS):
        # after a fork, Python 3.11 still has the number of the parent's main thread
        here = threading.get_native_id()
        python = {here, *(thread.native_id for thread in threading.enumerate())}
        others = [number for number in _threads() if number not in python]
        states = {number: state for number in others if (state := _state(number))}
        counts = {
            number: int(state["voluntary_ctxt_switches"]) + int(state["nonvoluntary_ctxt_switches"])
            for number, state in states.items()
        }
        if all(state["State"].startswith("S") for state in states.values()):
            break
        time.sleep(PAUSE)
    return counts


def _threads() -> list[int]:
    """Return the ids of all threads of this process; [] on other systems than Linux."""
    return [int(folder.name) for folder in THREADS.iterdir()] if THREADS.exists() else []


def _state(number: int) -> dict[str, str]:
    """Return the status of a thread from Linux; {} if the thread has just ended."""
    try:
        text = (THREADS / str(number) / "status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return {name: value.strip() for name, _, value in (x.partition(":") for x in text.splitlines())}
