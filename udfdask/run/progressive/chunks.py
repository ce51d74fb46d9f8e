"""Sources of computed chunks, and the one for dask's local schedulers: one `get` in a thread.

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
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import dask.array as da
from dask import config, local, threaded
from dask.callbacks import Callback
from dask.system import CPU_COUNT

from udfdask.chunk.partial_result import Partials
from udfdask.graph.build import Tasks, build_chunks, build_parameters
from udfdask.plan.plan import Plan
from udfdask.run.progressive.parameters import LiveRecipe

POLL = 1.0
"""Seconds after which a waiting thread wakes up: on Windows, Ctrl-C is handled only then."""


class Closed(Exception):
    """The run has been closed."""


class Chunks(ABC):
    """Computes chunks in the background, a few chunks ahead of the consumer.

    Partial results wait here until they are taken, in the order in which they are computed, or in
    navigation order if it matters.
    """

    def __init__(self, plan: Plan, array: da.Array, live: LiveRecipe) -> None:
        self.live = live
        self.changed = threading.Condition()
        self.closed = False
        self.n_taken = 0
        self._plan, self._array = plan, array
        # a random token: parameters may change, and a cluster computes equal names only once
        self._token = uuid.uuid4().hex
        self._ordered = any(udf.progressive_merge.needs_order for udf in plan.recipe.udfs)
        self._waiting: dict[int, Partials] = {}

    @abstractmethod
    def take(self) -> tuple[int, Partials]:
        """Return the next chunk and its partial results; raise Closed once closed."""

    def close(self) -> None:
        """Stop without waiting: running tasks may finish, no new task starts."""
        with self.changed:
            self.closed = True
            self._waiting.clear()
            self.changed.notify_all()

    def put(self, chunk: int, partials: Partials) -> None:
        """Add partial results, or drop them if the run is closed."""
        with self.changed:
            if not self.closed:
                self._waiting[chunk] = partials
            self.changed.notify_all()

    def n_ready(self) -> int:
        """Return the number of chunks that can be taken."""
        if not self._ordered:
            return len(self._waiting)
        numbers = itertools.count(self.n_taken)
        return sum(1 for _ in itertools.takewhile(self._waiting.__contains__, numbers))

    def take_ready(self) -> tuple[int, Partials] | None:
        """Return the next chunk and its partial results, None if it is not computed yet."""
        with self.changed:
            if self.closed:
                raise Closed
            if not self.n_ready():
                return None
            chunk = self.n_taken if self._ordered else next(iter(self._waiting))
            self.n_taken += 1
            self.changed.notify_all()
            return chunk, self._waiting.pop(chunk)

    def wait_until(self, condition: Callable[[], object]) -> None:
        """Wait until a condition is true or the run is closed; the caller holds the lock."""
        while not self.closed and not condition():
            self.changed.wait(POLL)

    def parameter_tasks(self) -> Tasks | None:
        """Return tasks that compute lazy parameters: their only result is the filled recipe."""
        return build_parameters(self.live.now, self._token)

    def chunk_tasks(self, recipe: Any) -> Tasks:
        """Return tasks that return the partial results; `recipe` is the argument of these tasks."""
        return build_chunks(self._plan, self._array, recipe, self._token)


def first_needs(tasks: Tasks) -> dict[Any, int]:
    """Return the first chunk that needs each task."""
    first: dict[Any, int] = {}
    for chunk, key in enumerate(tasks.keys):
        todo = [key]
        while todo:
            needed = todo.pop()
            if needed not in first and needed in tasks.dsk:
                first[needed] = chunk
                todo.extend(tasks.dsk[needed].dependencies)
    return first


class LocalChunks(Chunks):
    """Computes chunks with the `get` function of a dask scheduler."""

    def __init__(
        self,
        plan: Plan,
        array: da.Array,
        live: LiveRecipe,
        get: Callable[..., Any],
        options: Mapping[str, Any],
    ) -> None:
        super().__init__(plan, array, live)
        self._get, self._options = get, dict(options)
        self._workers = _count_workers(get, options)
        self._thread: threading.Thread | None = None
        self._finished = False
        self._error: BaseException | None = None
        self._chunk_of: dict[Any, int] = {}
        self._first: dict[Any, int] = {}
        self._back: list[tuple[int, int, Any]] = []
        self._count = itertools.count()

    def take(self) -> tuple[int, Partials]:
        """Return the next chunk and its partial results; raise Closed once closed."""
        with self.changed:
            if self._thread is None and not self.closed:
                # a daemon: Python can exit even if the consumer never closes the iterator
                run = contextvars.copy_context().run
                self._thread = threading.Thread(target=run, args=(self._work,), daemon=True)
                self._thread.start()
            self.wait_until(lambda: self._finished or self.n_ready())
            taken = self.take_ready()
        if taken is not None:
            return taken
        raise self._error or RuntimeError("the scheduler has ended, but not all chunks came")

    def _work(self) -> None:
        """Compute lazy parameters, then all chunks; keep errors for the consumer."""
        error: BaseException | None = None
        try:
            if (parameters := self.parameter_tasks()) is not None:
                self.live.fill(self._run(parameters)[0])
            tasks = self.chunk_tasks(self.live)
            self._chunk_of = {key: chunk for chunk, key in enumerate(tasks.keys)}
            self._first = first_needs(tasks)
            for chunk, partials in enumerate(self._run(tasks)):
                if partials is not None:  # from a scheduler that has no callbacks
                    self._hand_over(chunk, partials)
        except Closed:
            pass
        except BaseException as e:  # noqa: BLE001  # raised again by `take`
            error = e
        with self.changed:
            self._finished, self._error = True, error
            self.changed.notify_all()

    def _run(self, tasks: Tasks) -> Any:
        ours = (None, self._before_all, self._before_task, self._after_task, None)
        options, pool = dict(self._options), None
        if self._get is threaded.get and not (options.get("pool") or config.get("pool", None)):
            # dask would create a pool for this thread and never shut it down
            options["pool"] = pool = _Pool(self._workers)
        try:
            return self._get(
                tasks.dsk,
                tasks.keys,
                callbacks=[ours, *Callback.active],
                chunksize=1,  # the process scheduler would send six tasks at once
                optimize_graph=False,
                **options,
            )
        finally:
            if pool is not None:
                pool.shutdown(wait=False, cancel_futures=True)

    # The scheduler calls the following methods in its own thread.

    def _before_all(self, dsk: Any, state: dict[str, Any]) -> None:
        """Sort the tasks that are ready by their chunks, the next one last; hold back later ones.

        dask's own order ignores which chunk comes first. If chunks are merged in order, all later
        chunks would pile up in memory while a slow chunk runs.
        """
        # the window bounds the memory: with every snapshot read, a run over 20 GB peaks at 345 MB,
        # a run over 5 GB at 334 MB (asv_bench/memory.py --snapshots)
        ready, limit = state["ready"], self.n_taken + 2 * self._workers + 2
        now = [key for key in ready if self._first_of(key) < limit]
        for key in reversed(ready):
            if self._first_of(key) >= limit:
                heapq.heappush(self._back, (self._first_of(key), next(self._count), key))
        due = []
        while self._back and self._back[0][0] < limit:
            due.append(heapq.heappop(self._back)[2])
        # the sort is stable: the tasks of a chunk stay in dask's order
        ready[:] = sorted([*now, *reversed(due)], key=lambda key: -self._first_of(key))

    def _first_of(self, key: Any) -> int:
        """Return the first chunk that needs a task; 0 for a task that the scheduler has renamed."""
        return self._first.get(key, 0)

    def _before_task(self, *_: Any) -> None:
        if self.closed:
            raise Closed

    def _after_task(
        self, key: Any, value: Any, dsk: Any, state: dict[str, Any], worker: Any
    ) -> None:
        chunk = self._chunk_of.get(key)
        if chunk is not None:
            state["cache"][key] = None  # otherwise the scheduler keeps all of them until the end
            self._hand_over(chunk, value)
        self._before_all(dsk, state)
        self._before_task()

    def _hand_over(self, chunk: int, partials: Partials) -> None:
        """Pass partial results on, and wait while enough of them are ready."""
        with self.changed:
            self.put(chunk, partials)
            self.wait_until(lambda: self.n_ready() < self._workers)


class _Pool(ThreadPoolExecutor):
    """Threads that run each task in the context of its submitter, as in dask's own pool."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a function in one of the threads."""
        return super().submit(contextvars.copy_context().run, function, *args, **kwargs)


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
