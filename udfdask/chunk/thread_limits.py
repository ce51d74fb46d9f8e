"""Holds BLAS, OpenMP and numba to a task's share of threads while chunk tasks run."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import Any

from threadpoolctl import ThreadpoolController


class ThreadGuard:
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

    def limit(self, threads: int) -> _Limited:
        """Return a context in which at most so many threads are used per library."""
        return _Limited(self, threads)

    def _scan(self) -> None:
        """Look for libraries again if modules have been imported since the last look."""
        if len(sys.modules) != self._modules:
            self._modules = len(sys.modules)
            found = ThreadpoolController().lib_controllers
            self._per_thread = [c for c in found if _is_per_thread(c)]
            self._process_wide = [c for c in found if not _is_per_thread(c)]

    def enter(self, threads: int) -> list[tuple[Any, int]]:
        """Limit this thread, and the process if this is the first task; return what to restore."""
        with self._lock:
            self._scan()
            self._inside += 1
            # all but the first task find the libraries lowered already, unless one was just loaded
            self._saved += _lower_all(self._process_wide, threads)
            per_thread = self._per_thread
        own = _lower_all(per_thread, threads)
        numba = sys.modules.get("numba")
        if numba is not None and hasattr(numba, "set_num_threads"):
            before = numba.get_num_threads()
            if before > threads:
                numba.set_num_threads(threads)
                own.append((_Numba(numba), before))
        return own

    def leave(self, own: list[tuple[Any, int]]) -> None:
        """Restore this thread, and the process if this was the last task."""
        for library, before in own:
            _set(library, before)
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                for library, before in reversed(self._saved):
                    _set(library, before)
                self._saved = []


class _Numba:
    """numba behind the one method that restoring needs."""

    def __init__(self, module: Any) -> None:
        self.set_num_threads = module.set_num_threads


class _Limited:
    """The context of one task."""

    __slots__ = ("_guard", "_own", "_threads")

    def __init__(self, guard: ThreadGuard, threads: int) -> None:
        self._guard = guard
        self._threads = threads

    def __enter__(self) -> None:
        self._own = self._guard.enter(self._threads)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._guard.leave(self._own)


def _lower_all(libraries: list[Any], threads: int) -> list[tuple[Any, int]]:
    """Lower libraries to so many threads; return those that had more, with what they had."""
    lowered = []
    for library in libraries:
        before = library.get_num_threads()
        if before is not None and before > threads:
            _set(library, threads)
            lowered.append((library, before))
    return lowered


def _is_per_thread(library: Any) -> bool:
    """Return whether a library counts threads for each calling thread."""
    if library.user_api == "openmp":
        return True
    layer = getattr(library, "threading_layer", None)
    return library.internal_api == "openblas" and layer == "openmp"


def _set(library: Any, threads: int) -> None:
    """Set the number of threads of a library.

    threadpoolctl 3.8 silently ignores all threads but the first one that has set a limit of
    OpenBLAS. The last task out is rarely the first one in, so that its claim is lifted.
    """
    release = getattr(library, "clear_controlling_thread", None)
    if release is not None:
        release(force=True)
    library.set_num_threads(threads)
    if release is not None:
        release(force=True)


guard = ThreadGuard()
"""The guard of this process."""
