"""What holds while a task works: limits of threads, and a current device."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from threadpoolctl import ThreadpoolController

from udfdask.backends.backend import Backend
from udfdask.backends.device import n_devices
from udfdask.errors import DeviceError
from udfdask.plan.recipe import Recipe


@contextmanager
def chunk_context(
    recipe: Recipe, numbers: Sequence[int], backends: Sequence[Backend], blocks: Sequence[Backend]
) -> Iterator[None]:
    """Hold for a task that runs the UDFs `numbers`; `backends` has those of all UDFs.

    BLAS, OpenMP and numba use at most the threads of a task.
    """
    chosen = [backends[number] for number in numbers]
    # the announced backend counts too: results are merged there, also if these blocks are not
    data = [recipe.native, *blocks]
    if any(backend.device == "cuda" and not backend.on_device for backend in chosen):
        _require_cuda()
    place = next((backend for backend in (*data, *chosen) if backend.on_device), recipe.native)
    # NumPy chunks are sent to the device and processed on a stream of this thread, and each task
    # waits for its stream before it ends: a stream that uses its results finds them there. CuPy
    # chunks are processed on the current stream, which made them: another would not wait for them.
    own_stream = not any(backend.on_device for backend in data)
    with _limited(recipe), place.dense.at_work(own_stream=own_stream):
        yield


@contextmanager
def merge_context(recipe: Recipe) -> Iterator[None]:
    """Hold for a task that merges or finalizes results."""
    with _limited(recipe), recipe.result_backend.at_work(own_stream=False):
        yield


def _limited(recipe: Recipe) -> AbstractContextManager[None]:
    return limiter.limit(recipe.threads) if recipe.limits_threads else nullcontext()


def _require_cuda() -> None:
    """Raise if this task has no CUDA device; a worker with the resource tag CUDA has one."""
    if n_devices() or _carries_tag():
        return
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    raise DeviceError(
        "a UDF that needs a CUDA device was run where there is none (CUDA_VISIBLE_DEVICES is "
        f"{'not set' if visible is None else repr(visible)}): compute with Result.compute() or "
        "udfdask.compute() on a cluster with workers that carry the resource tag CUDA=1, or pass "
        "resources=udfdask.get_resources(udf) yourself; without a cluster, run on a machine with a "
        "device, or let the UDF offer 'numpy' in get_backends()"
    )


def _carries_tag() -> bool:
    """Return whether a distributed worker with the resource tag CUDA runs this task."""
    worker = sys.modules.get("distributed.worker")  # not imported: no distributed worker
    if worker is None:
        return False
    try:
        resources = worker.get_worker().state.total_resources
    except ValueError:  # not on a worker
        return False
    return bool(resources.get("CUDA", 0) > 0)


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
        own += _lower_all(per_thread, threads)
        try:
            yield
        finally:
            _restore(own)
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    _restore(self._saved)
                    self._saved = []

    def _scan(self) -> None:
        """Search for libraries again if modules have been imported since the last search."""
        if len(sys.modules) != self._modules:
            self._modules = len(sys.modules)
            found = ThreadpoolController().lib_controllers
            self._per_thread = [c for c in found if _is_per_thread(c)]
            self._process_wide = [c for c in found if not _is_per_thread(c)]


def _lower_all(libraries: list[Any], threads: int) -> list[tuple[Any, int]]:
    """Limit the threads of libraries; return those that had more, with their old number."""
    lowered = []
    for library in libraries:
        before = library.get_num_threads()
        if before is not None and before > threads:
            _set(library, threads)
            lowered.append((library, before))
    return lowered


def _restore(lowered: list[tuple[Any, int]]) -> None:
    for library, before in reversed(lowered):
        _set(library, before)


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
