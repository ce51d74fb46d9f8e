"""Computes chunks on one of dask's schedulers of one machine: one `get` in a background thread.

It is one `get` for all chunks, because blocks that several chunks need would be loaded again by
the next `get`. Callbacks of the scheduler stop it while the consumer is behind, drop results from
its cache once they are handed over, and reorder the tasks that are ready, since dask's own order
may begin with the last chunk.
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

from udfdask.chunk.run_chunk import Partials
from udfdask.graph.build import Tasks
from udfdask.run.progressive.chunk_source import Arrivals, Closed, Job


class LocalChunks:
    """Payloads of all chunks of a job from a `get` function of dask's kind."""

    def __init__(self, job: Job, get: Callable[..., Any], options: Mapping[str, Any]) -> None:
        self._job = job
        self._get = get
        self._options = dict(options)
        self._arrivals = Arrivals(job.ordered)
        self._workers = _count_workers(get, options)
        self._thread: threading.Thread | None = None
        self._over = False
        self._error: BaseException | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._turns: _Turns | None = None
        self._chunk_of: dict[Any, int] = {}

    def take(self) -> tuple[int, Partials] | None:
        """Return a chunk and its payload, None after the last one."""
        arrivals = self._arrivals
        with arrivals.changed:
            if self._thread is None and not arrivals.closed:
                self._start()
            arrivals.wait_until(lambda: self._over or arrivals.ready())
            taken = arrivals.take()
            if taken is None and self._error is not None:
                error, self._error = self._error, None
                raise error
            return taken

    def close(self) -> None:
        """Stop: what runs may finish, nothing new starts."""
        self._arrivals.close()

    def _start(self) -> None:
        """Start the work in the background, in the context of whoever asks for the first chunk."""
        context = contextvars.copy_context()
        # a daemon: where the consumer has left an iterator behind, Python may end nevertheless
        self._thread = threading.Thread(
            target=context.run, args=(self._work,), name="udfdask-progressive", daemon=True
        )
        self._thread.start()

    def _work(self) -> None:
        """Compute everything; errors are kept for the consumer."""
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
                self._over, self._error = True, error
                self._arrivals.changed.notify_all()

    def _compute(self) -> None:
        """Compute lazy parameters, then all chunks."""
        live = self._job.live
        parameters = self._job.parameters()
        if parameters is not None:
            live.fill(self._run(parameters)[0])
        tasks = self._job.chunks(live)
        self._chunk_of = {key: chunk for chunk, key in enumerate(tasks.keys)}
        self._turns = _Turns(_first_needs(tasks), 2 * self._workers + 2)
        payloads = self._run(tasks)
        for chunk, payload in enumerate(payloads):
            if payload is not None:  # from a scheduler that has no callbacks
                self._hand_over(chunk, payload)

    def _run(self, tasks: Tasks) -> Any:
        """Compute tasks with the scheduler."""
        ours = (None, self._before_all, self._before_task, self._after_task, None)
        options = dict(self._options)
        if self._get is threaded.get and not (options.get("pool") or config.get("pool", None)):
            # dask keeps the pools that it makes for threads like this one
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

    # The scheduler calls these in its own thread.

    def _before_all(self, dsk: Any, state: dict[str, Any]) -> None:
        if self._turns is not None:
            self._turns.apply(state["ready"], self._arrivals.progress)

    def _before_task(self, key: Any, dsk: Any, state: dict[str, Any]) -> None:
        if self._arrivals.closed:
            raise Closed

    def _after_task(
        self, key: Any, value: Any, dsk: Any, state: dict[str, Any], worker: Any
    ) -> None:
        chunk = self._chunk_of.get(key)
        if chunk is not None:
            state["cache"][key] = None  # or the scheduler keeps all payloads to the end
            self._hand_over(chunk, value)
        self._before_all(dsk, state)
        if self._arrivals.closed:
            raise Closed

    def _hand_over(self, chunk: int, payload: Partials) -> None:
        """Pass a payload on; wait while the consumer has enough to do."""
        arrivals = self._arrivals
        arrivals.put(chunk, payload)
        with arrivals.changed:
            arrivals.wait_until(lambda: arrivals.ready(self._workers) < self._workers)


class _Pool(ThreadPoolExecutor):
    """Threads that run each task in the context of whoever submits it, as those of dask do."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a function in one of the threads."""
        return super().submit(contextvars.copy_context().run, function, *args, **kwargs)


class _Turns:
    """Has tasks run roughly in the order of the chunks, and not far beyond what has arrived.

    dask's own order does not care which chunk comes first; and where the order of merging
    matters, all others would pile up behind a slow chunk.
    """

    def __init__(self, first_needs: Mapping[Any, int], window: int) -> None:
        self._first_needs = first_needs
        self._window = window
        self._back: list[tuple[int, int, Any]] = []
        self._count = itertools.count()

    def apply(self, ready: list[Any], progress: int) -> None:
        """Put the tasks that are ready in order, the next one last, and those far off back."""
        limit = progress + self._window
        for key in reversed(ready):
            if self._first(key) >= limit:
                heapq.heappush(self._back, (self._first(key), next(self._count), key))
        ready[:] = [key for key in ready if self._first(key) < limit]
        due = []
        while self._back and self._back[0][0] < limit:
            due.append(heapq.heappop(self._back)[2])
        ready.extend(reversed(due))
        # stable, which leaves the tasks of a chunk in dask's order
        ready.sort(key=lambda key: -self._first(key))

    def _first(self, key: Any) -> int:
        """Return the first chunk that needs a task; 0 for those that a scheduler has renamed."""
        return self._first_needs.get(key, 0)


def _first_needs(tasks: Tasks) -> dict[Any, int]:
    """Return for each task the first chunk that needs it."""
    first: dict[Any, int] = {}
    for chunk, key in enumerate(tasks.keys):
        todo = [key]
        while todo:
            needed = todo.pop()
            if needed not in first and needed in tasks.dsk:
                first[needed] = chunk
                todo.extend(tasks.dsk[needed].dependencies)
    return first


def _count_workers(get: Callable[..., Any], options: Mapping[str, Any]) -> int:
    """Return how many tasks a scheduler may run at once."""
    if get is local.get_sync:
        return 1
    pool = options.get("pool") or config.get("pool", None)
    asked = options.get("num_workers") or config.get("num_workers", None)
    if isinstance(get, partial) and len(get.args) > 1:  # made by dask of an executor
        asked = get.args[1]
    return int(getattr(pool, "_max_workers", None) or asked or CPU_COUNT)
