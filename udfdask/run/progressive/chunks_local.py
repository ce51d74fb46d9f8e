"""Compute chunks on one of dask's local schedulers: one `get` in a background thread.

There is one `get` for all chunks, because a second `get` would load blocks again that several
chunks need. Callbacks of the scheduler pause it while the consumer is slower, drop partial results
from its cache after they are passed on, and reorder the tasks that are ready, because dask's own
order may begin with the last chunk.
"""

from __future__ import annotations

import contextvars
import heapq
import itertools
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from dask import config, local, threaded
from dask.callbacks import Callback
from dask.system import CPU_COUNT

from udfdask.chunk.partial_result import Partials
from udfdask.graph.build import Tasks
from udfdask.run.progressive.chunk_source import Arrivals, Closed, Job, first_needs


class LocalChunks:
    """Computes the partial results of a job with the `get` function of a dask scheduler."""

    def __init__(self, job: Job, get: Callable[..., Any], options: Mapping[str, Any]) -> None:
        self._job = job
        self._get = get
        self._options = dict(options)
        self._arrivals = Arrivals(job.ordered)
        self._workers = _count_workers(get, options)
        self._thread: threading.Thread | None = None
        self._finished = False
        self._error: BaseException | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._order: _TaskOrder | None = None
        self._chunk_of: dict[Any, int] = {}

    def take(self) -> tuple[int, Partials] | None:
        """Return a chunk and its partial results, None after the last one."""
        arrivals = self._arrivals
        with arrivals.changed:
            if self._thread is None and not arrivals.closed:
                self._start()
            arrivals.wait_until(lambda: self._finished or arrivals.ready())
            taken = arrivals.take()
            if taken is None and self._error is not None:
                error, self._error = self._error, None
                raise error
            return taken

    def close(self) -> None:
        """Stop: running tasks may finish, no new task starts."""
        self._arrivals.close()

    def _start(self) -> None:
        """Start the background thread, in the context of the caller of the first `take`."""
        context = contextvars.copy_context()
        # a daemon: Python can exit even if the consumer never closes the iterator
        self._thread = threading.Thread(
            target=context.run, args=(self._work,), name="udfdask-progressive", daemon=True
        )
        self._thread.start()

    def _work(self) -> None:
        """Compute everything; keep errors for the consumer."""
        error: BaseException | None = None
        try:
            self._compute()
        except Closed:
            pass
        except BaseException as e:  # noqa: BLE001  # raised again by `take`
            error = e
        finally:
            if self._pool is not None:
                self._pool.shutdown(wait=False, cancel_futures=True)
            with self._arrivals.changed:
                self._finished, self._error = True, error
                self._arrivals.changed.notify_all()

    def _compute(self) -> None:
        """Compute lazy parameters, then all chunks."""
        live = self._job.live
        parameters = self._job.parameters()
        if parameters is not None:
            live.fill(self._run(parameters)[0])
        tasks = self._job.chunks(live)
        self._chunk_of = {key: chunk for chunk, key in enumerate(tasks.keys)}
        # the window bounds the memory: with every snapshot read, a run over 20 GB peaks at 345 MB,
        # a run over 5 GB at 334 MB (asv_bench/memory.py --snapshots)
        self._order = _TaskOrder(first_needs(tasks), 2 * self._workers + 2)
        payloads = self._run(tasks)
        for chunk, payload in enumerate(payloads):
            if payload is not None:  # from a scheduler that has no callbacks
                self._hand_over(chunk, payload)

    def _run(self, tasks: Tasks) -> Any:
        """Compute tasks with the scheduler."""
        ours = (None, self._before_all, self._before_task, self._after_task, None)
        options = dict(self._options)
        if self._get is threaded.get and not (options.get("pool") or config.get("pool", None)):
            # dask would create a pool for this thread and never shut it down
            if self._pool is None:
                self._pool = _Pool(self._workers)
            options["pool"] = self._pool
        return self._get(
            tasks.dsk,
            tasks.keys,
            callbacks=[ours, *Callback.active],
            chunksize=1,  # the process scheduler would send six tasks at once
            optimize_graph=False,
            **options,
        )

    # The scheduler calls the following methods in its own thread.

    def _before_all(self, dsk: Any, state: dict[str, Any]) -> None:
        if self._order is not None:
            self._order.apply(state["ready"], self._arrivals.progress)

    def _before_task(self, key: Any, dsk: Any, state: dict[str, Any]) -> None:
        if self._arrivals.closed:
            raise Closed

    def _after_task(
        self, key: Any, value: Any, dsk: Any, state: dict[str, Any], worker: Any
    ) -> None:
        chunk = self._chunk_of.get(key)
        if chunk is not None:
            state["cache"][key] = None  # otherwise the scheduler keeps all of them until the end
            self._hand_over(chunk, value)
        self._before_all(dsk, state)
        if self._arrivals.closed:
            raise Closed

    def _hand_over(self, chunk: int, payload: Partials) -> None:
        """Pass partial results on, and wait while enough of them are ready."""
        arrivals = self._arrivals
        arrivals.put(chunk, payload)
        with arrivals.changed:
            arrivals.wait_until(lambda: arrivals.ready(self._workers) < self._workers)


class _Pool(ThreadPoolExecutor):
    """Threads that run each task in the context of its submitter, as in dask's own pool."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a function in one of the threads."""
        return super().submit(contextvars.copy_context().run, function, *args, **kwargs)


class _TaskOrder:
    """Runs tasks roughly in the order of the chunks, and only a window ahead of finished chunks.

    dask's own order ignores which chunk comes first. If chunks are merged in order, all later
    chunks would pile up in memory while a slow chunk runs.
    """

    def __init__(self, first_needs: Mapping[Any, int], window: int) -> None:
        self._first_needs = first_needs
        self._window = window
        self._back: list[tuple[int, int, Any]] = []
        self._count = itertools.count()

    def apply(self, ready: list[Any], progress: int) -> None:
        """Sort the tasks that are ready, the next one last; hold back tasks beyond the window."""
        limit = progress + self._window
        for key in reversed(ready):
            if self._first(key) >= limit:
                heapq.heappush(self._back, (self._first(key), next(self._count), key))
        ready[:] = [key for key in ready if self._first(key) < limit]
        due = []
        while self._back and self._back[0][0] < limit:
            due.append(heapq.heappop(self._back)[2])
        ready.extend(reversed(due))
        # the sort is stable: the tasks of a chunk stay in dask's order
        ready.sort(key=lambda key: -self._first(key))

    def _first(self, key: Any) -> int:
        """Return the first chunk that needs a task; 0 for a task that the scheduler has renamed."""
        return self._first_needs.get(key, 0)


def _count_workers(get: Any, options: Mapping[str, Any]) -> int:
    """Return the number of tasks that a local scheduler may run at the same time."""
    if get is None or get is local.get_sync:
        return 1
    pool = options.get("pool") or config.get("pool", None)
    asked = options.get("num_workers") or config.get("num_workers", None)
    if isinstance(get, partial) and len(get.args) > 1:  # dask has made it from an executor
        asked = get.args[1]
    # an executor of concurrent.futures, or a pool of multiprocessing
    own = getattr(pool, "_max_workers", None) or getattr(pool, "_processes", None)
    return int(own or asked or CPU_COUNT)
