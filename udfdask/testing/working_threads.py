"""Which threads of the process work while something else runs.

Counts are compared, no times: a busy machine changes nothing. A thread that sleeps is not switched
to, and one that helps is switched to at least once.
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
"""Where Linux describes the threads of this process; other systems have no such folder."""

PAUSE = 0.005
"""Seconds between two looks at threads that are still awake: OpenBLAS's spin for 0.1 s."""

LOOKS = 400
"""Looks at threads that never sleep, as those of somebody else's work, before they are ignored."""


def helpers_of(run: Callable[[], Any], times: int = 3) -> int:
    """Return how many other threads work each time that `run` is called.

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
    # a thread that works by chance does not do so each time
    return len(started) + len(set.intersection(*helping))


@contextmanager
def _noting_starts() -> Iterator[list[threading.Thread]]:
    """Give the list of the Python threads that this thread starts meanwhile."""
    here, start = threading.get_ident(), threading.Thread.start
    started: list[threading.Thread] = []

    def noting(thread: threading.Thread) -> None:
        if threading.get_ident() == here:
            started.append(thread)
        start(thread)

    with patch.object(threading.Thread, "start", noting):
        yield started


def _switches() -> dict[int, int]:
    """Return how often each thread that is not Python's was switched to, once all are asleep."""
    counts: dict[int, int] = {}
    for _ in range(LOOKS):
        python = {thread.native_id for thread in threading.enumerate()}
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
    return [int(folder.name) for folder in THREADS.iterdir()] if THREADS.exists() else []


def _state(number: int) -> dict[str, str]:
    """Return what Linux tells about a thread; nothing about one that has just ended."""
    try:
        text = (THREADS / str(number) / "status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return {name: value.strip() for name, _, value in (x.partition(":") for x in text.splitlines())}
