"""Limit the threads of BLAS, OpenMP and numba to a task's share of cores while chunk tasks run."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController


class ThreadLimiter:
    """A counted limit, shared by all tasks of a process.

    The thread count of a BLAS library belongs to the process: the first task in sets it, the last
    one out restores it exactly. That of OpenMP and of numba belongs to the calling thread: each
    task sets and restores its own.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._saved: list[tuple[Any, int]] = []
        self._modules = -1
        self._process_wide: list[Any] = []
        self._per_thread: list[Any] = []

    @contextmanager
    def limit(self, threads: int) -> Iterator[None]:
        """Limit each library to this number of threads in a `with` block."""
        own = self._enter(threads)
        try:
            yield
        finally:
            self._leave(own)

    def _scan(self) -> None:
        """Search for libraries again if modules have been imported since the last search."""
        if len(sys.modules) != self._modules:
            self._modules = len(sys.modules)
            found = ThreadpoolController().lib_controllers
            self._per_thread = [c for c in found if _is_per_thread(c)]
            self._process_wide = [c for c in found if not _is_per_thread(c)]

    def _enter(self, threads: int) -> list[tuple[Any, int]]:
        """Limit this thread, and the process if this is the first task; return what to restore."""
        own = []
        numba = sys.modules.get("numba")
        if numba is not None and hasattr(numba, "set_num_threads"):
            before = numba.get_num_threads()  # its first call loads OpenMP, which is then limited
            if before > threads:
                numba.set_num_threads(threads)
                own.append((numba, before))
        with self._lock:
            self._scan()
            self._inside += 1
            # for all tasks but the first, only a library that was just loaded still needs a limit
            self._saved += _lower_all(self._process_wide, threads)
            per_thread = self._per_thread
        return own + _lower_all(per_thread, threads)

    def _leave(self, own: list[tuple[Any, int]]) -> None:
        """Restore this thread, and the process if this was the last task."""
        for library, before in own:
            _set(library, before)
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                for library, before in reversed(self._saved):
                    _set(library, before)
                self._saved = []


def _lower_all(libraries: list[Any], threads: int) -> list[tuple[Any, int]]:
    """Limit the threads of libraries; return those that had more, with their old number."""
    lowered = []
    for library in libraries:
        before = library.get_num_threads()
        if before is not None and before > threads:
            _set(library, threads)
            lowered.append((library, before))
    return lowered


def _is_per_thread(library: Any) -> bool:
    """Return whether a library has its own limit for each calling thread."""
    if library.user_api == "openmp":
        return True
    layer = getattr(library, "threading_layer", None)
    return library.internal_api == "openblas" and layer == "openmp"


def _set(library: Any, threads: int) -> None:
    """Set the number of threads of a library.

    threadpoolctl 3.8 lets only one thread, the first, set the limit of OpenBLAS, and silently
    ignores all others. The last task to end is rarely the first that started, so that this control
    is released before and after each change.
    """
    release = getattr(library, "clear_controlling_thread", None)
    if release is not None:
        release(force=True)
    library.set_num_threads(threads)
    if release is not None:
        release(force=True)


limiter = ThreadLimiter()
"""The limiter of this process."""
