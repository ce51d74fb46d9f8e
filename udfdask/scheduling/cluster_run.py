"""Compute on the workers of a cluster, count the tasks, and explain why workers ended."""

from __future__ import annotations

import contextlib
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from dask import base
from distributed import KilledWorker, futures_of, span
from distributed.diagnostics.plugin import SchedulerPlugin

from udfdask.base.tracebacks import add_origin
from udfdask.graph.chunk_layers import ChunkBlockwise, ChunkTasks, find_chunk_layers
from udfdask.scheduling.progress import ProgressCounter, reporting_end
from udfdask.scheduling.restrictions import restrict


def run_on_cluster(
    name: str,
    collections: tuple[Any, ...],
    given: Any,
    client: Any,
    counter: ProgressCounter | None,
    options: Mapping[str, Any],
) -> Any:
    """Return what dask's `compute` or `persist` returns; `given` has the layers of the runs."""
    collections, annotations, rest = restrict(collections, client, options)
    with contextlib.ExitStack() as stack:
        stack.enter_context(base.annotate(**annotations))
        stack.enter_context(span(f"udfdask.{name}"))
        if counter is not None:
            stack.enter_context(reporting_end(counter))
        stack.enter_context(explaining_killed_workers(lambda: find_chunk_layers(given)))
        if counter is None or not counter.layer_names:
            return getattr(base, name)(*collections, **rest)
        wait = stack.enter_context(_counting(client, counter))
        method = getattr(client, name)
        # as `dask.compute` does, drop options of local schedulers, such as num_workers
        accepted = inspect.signature(method).parameters
        rest = {option: value for option, value in rest.items() if option in accepted}
        # not dask.persist: dask 2025.12 would use the current client, and wait if it is another one
        flat, repack = base.unpack_collections(*collections)
        sent = method(flat, **rest)
        futures = sent if name == "compute" else futures_of(repack(sent), client=client)
        keeps = False
        try:
            finished = wait(futures)
            if name == "compute":
                return repack(client.gather(futures))
            if not finished:  # persisted collections raise their errors when they are used
                counter.end("failed")
            keeps = True
            return repack(sent)
        finally:
            # otherwise the cluster would go on as long as a traceback refers to the futures
            for future in () if keeps else futures:
                future.release()


class ChunkTaskPlugin(SchedulerPlugin):
    """Collects the tasks of some layers that the scheduler receives, and those that finish."""

    def __init__(self, name: str, layers: frozenset[str]) -> None:
        self.name = name
        self._layers = layers
        self._received: list[Any] = []
        self._done: list[Any] = []

    def _is_ours(self, key: Any) -> bool:
        """Return whether a task belongs to one of our layers."""
        return isinstance(key, tuple) and key[0] in self._layers

    def update_graph(self, scheduler: Any, *, tasks: Any = (), **_: Any) -> None:
        """Record received tasks, and those of them that had finished before."""
        ours = [key for key in tasks if self._is_ours(key)]
        self._received += ours
        self._done += [key for key in ours if scheduler.tasks[key].state == "memory"]

    def transition(self, key: Any, start: Any, finish: Any, *_: Any, **__: Any) -> None:
        """Record a finished task."""
        if finish == "memory" and self._is_ours(key):
            self._done.append(key)


def take_from(name: str, dask_scheduler: Any) -> tuple[list[Any], list[Any]]:
    """Return the tasks that a plugin received since the last call, and those that finished."""
    plugin = dask_scheduler.plugins.get(name)
    if plugin is None:
        return [], []
    taken = plugin._received, plugin._done
    plugin._received, plugin._done = [], []
    return taken


INTERVAL = 0.2
"""Seconds between two requests to the scheduler."""

_LOST = (OSError, RuntimeError, ValueError, AttributeError)
"""Exceptions of a request if the scheduler is lost or the client has been closed."""


@contextlib.contextmanager
def _counting(client: Any, counter: ProgressCounter) -> Iterator[Callable[[Sequence[Any]], bool]]:
    """Yield a function that waits for futures, counts tasks, and returns whether all finished."""
    name = f"udfdask-progress-{counter.id}"
    client.register_plugin(ChunkTaskPlugin(name, frozenset(counter.layer_names)))

    def count() -> None:
        try:
            received, done = client.run_on_scheduler(partial(take_from, name))
        except _LOST:  # the futures will raise an error about it
            return
        if received and not counter.started:
            counter.start(received)
        if done and counter.started:
            counter.add(done)

    def wait(futures: Sequence[Any]) -> bool:
        done = _done_event(futures)
        # the futures of a closed client may never change their state
        while not done.wait(INTERVAL) and client.status not in ("closing", "closed"):
            count()
        count()
        return all(future.status == "finished" for future in futures)

    try:
        yield wait
    finally:
        with contextlib.suppress(*_LOST):  # a closed client has removed it
            client.unregister_scheduler_plugin(name)


def _done_event(futures: Sequence[Any]) -> threading.Event:
    """Return an event that is set when all futures have finished, or one has failed."""
    done, remaining = threading.Event(), set(range(len(futures)))

    def on_done(number: int, future: Any) -> None:
        remaining.discard(number)
        if not remaining or future.status != "finished":
            done.set()

    for number, future in enumerate(futures):
        future.add_done_callback(partial(on_done, number))
    if not futures:
        done.set()
    return done


@contextlib.contextmanager
def explaining_killed_workers(
    layers: Callable[[], Mapping[str, ChunkBlockwise | ChunkTasks]],
) -> Iterator[None]:
    """Add a note to distributed's KilledWorker: the UDFs, the chunk, and what to do."""
    try:
        yield
    except KilledWorker as error:
        add_origin(
            error,
            f"raised by {_described(error.task, layers())}: the workers that had it ended. "
            "Their logs say whether they reached their memory limit: then make chunks smaller with "
            "array.rechunk(...), or give each worker fewer threads. Otherwise the UDF or a library "
            "ended the process: run this chunk alone on the scheduler 'synchronous', with roi= set "
            "to its positions",
        )
        raise


def _described(key: Any, layers: Mapping[str, ChunkBlockwise | ChunkTasks]) -> str:
    """Return the UDFs and the chunk of a task in words; other tasks keep dask's name."""
    name, *place = key if isinstance(key, tuple) else (key,)
    for layer_name, layer in layers.items():
        # dask joins the names of fused tasks
        if str(name) == layer_name or str(name).endswith(f"-{layer_name}"):
            info, grid = layer.info, layer.info.recipe.grid
            chunk = info.chunks.get((layer_name, *place))
            if chunk is not None:
                names = dict.fromkeys(info.recipe.udfs[k].name for k in info.numbers)
                index = grid.index(chunk)
                spans = zip(*grid.bounds_at(index), strict=True)
                slices = ", ".join(f"{first}:{first + n}" for first, n in spans)
                return f"{' and '.join(names)} on chunk {index}, navigation [{slices}]"
    return f"task {key!r}"
