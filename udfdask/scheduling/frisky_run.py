"""Compute on the workers of a Frisky cluster, and count the tasks.

Frisky has no worker restrictions, and no plugins that count tasks. So runs whose tasks cannot run
on every worker are refused, and futures of the chunk tasks say which of them are done.

The scheduler lists the tasks, as that of distributed does. A client that lists them, pickles each,
and sends them all takes 20 kB of memory for each chunk.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import cloudpickle
import frisky
from dask import base
from dask.core import flatten
from frisky import dask_get

from udfdask.base.tracebacks import warn_user
from udfdask.errors import ArgumentValueError, DeviceError
from udfdask.graph.dask_internals.expressions import as_dask
from udfdask.graph.dask_internals.layers import listed
from udfdask.graph.dask_internals.tasks import TaskRef
from udfdask.plan.groups import CUDA_CHUNK_LAYER
from udfdask.scheduling.progress import ProgressCounter, reporting_end
from udfdask.scheduling.restrictions import restricted_layers

OF_DISTRIBUTED = frozenset(
    ("workers", "allow_other_workers", "resources", "retries", "priority", "fifo_timeout", "actors")
)
"""Options and annotations that have no effect on Frisky."""

INTERVAL = 0.2
"""Seconds between two looks at what is done."""


def run_on_cluster(
    name: str,
    collections: tuple[Any, ...],
    given: Any,
    client: Any,
    counter: ProgressCounter | None,
    options: Mapping[str, Any],
) -> Any:
    """Return what dask's `compute` or `persist` returns, as `cluster_run.run_on_cluster` does."""
    every, _ = base.unpack_collections(*collections)
    check_anywhere([as_dask(collection).__dask_graph__() for collection in every], options)

    def get(expression: Any, keys: Any, **_: Any) -> Any:
        return _run(client, expression, list(flatten([keys])), counter, keep=name == "persist")

    how = {option: options[option] for option in options.keys() & {"optimize_graph", "traverse"}}
    with contextlib.nullcontext() if counter is None else reporting_end(counter):
        return getattr(base, name)(*collections, scheduler=get, **how)


def check_anywhere(
    graphs: Iterable[Any], options: Mapping[str, Any], for_device: Iterable[str] = ()
) -> None:
    """Raise if tasks cannot run on every worker; warn about options that Frisky does not have.

    `for_device` are names of UDFs that need a device, if no task of the graphs runs them.
    """
    graphs = list(graphs)
    layers = {name for graph in graphs for name in restricted_layers(graph)}
    instead = "use the cluster of a distributed.Client"
    if for_device := sorted({*for_device, *(n for n in layers if CUDA_CHUNK_LAYER in n)}):
        raise DeviceError(
            f"{', '.join(for_device)} can run only on a CUDA device, but Frisky sends tasks to any "
            f"worker: {instead} whose workers have the resources CUDA=1; or let the UDF run "
            "without a device: return 'numpy' in its get_backends(), and include it in backends= "
            "if you pass that"
        )
    if layers:
        raise ArgumentValueError(
            "on_workers says which workers can load a block, but Frisky sends tasks to any worker: "
            f"{instead}, or pass the array without on_workers if every worker can load every block"
        )
    asked = {**base.get_annotations(), **options}
    for graph in graphs:
        for layer in getattr(graph, "layers", {}).values():
            asked |= layer.annotations or {}
    if ignored := sorted(name for name in OF_DISTRIBUTED if asked.get(name)):
        warn_user(f"Frisky ignores {', '.join(ignored)}: {instead} if the run depends on it")


class _ListedThere:
    """An expression whose tasks the scheduler lists: it calls these methods."""

    def __init__(self, expression: Any, keys: list[str]) -> None:
        self._expression, self._keys = expression, keys

    def __frisky_output_keys__(self) -> list[str]:
        """Return the keys of the results."""
        return self._keys

    def __frisky_graph__(self, seen: Any = None) -> list[tuple[Any, ...]]:
        """Return for each task: key, function, arguments, keyword arguments, keys of inputs."""
        tasks = {str(key): task for key, task in listed(self._expression).items()}
        records: list[tuple[Any, ...]] = []
        for key, task in tasks.items():
            needs = list(task.dependencies)
            inputs = [str(need) for need in needs]
            if key in inputs or not tasks.keys() >= set(inputs):
                raise NotImplementedError("the graph has futures, which only the client knows")
            records.append((key, _run_task, (task, needs, *map(TaskRef, inputs)), {}, inputs))
        return records


def _run_task(task: Any, keys: list[Any], *inputs: Any) -> Any:
    """Run a task of dask."""
    return task(dict(zip(keys, inputs, strict=True)))


def submit(client: Any, expression: Any, keys: list[Any]) -> list[Any]:
    """Send an optimized expression to the cluster; return the futures of some keys."""
    names = list(map(str, keys))
    distinct = list(dict.fromkeys(names))
    packed = cloudpickle.dumps(_ListedThere(expression, distinct))
    try:
        futures = dict(zip(distinct, client.submit_expression(packed, distinct), strict=True))
    except NotImplementedError:
        return submit_tasks(client, dict(expression.__dask_graph__()), keys)
    return [futures[name] for name in names]


def submit_tasks(client: Any, tasks: dict[Any, Any], keys: list[Any]) -> list[Any]:
    """Send tasks to the cluster; return the futures of some keys."""
    futures: list[Any] = dask_get(client, tasks, keys, sync=False)
    return futures


def _run(
    client: Any, expression: Any, keys: list[Any], counter: ProgressCounter | None, keep: bool
) -> list[Any]:
    """Return the results of some keys, or their futures."""
    counted = [key for key in expression.__dask_graph__() if key in counter] if counter else []
    every = submit(client, expression, keys + counted)
    futures = every[: len(keys)]
    outputs, chunks = set(futures), dict(zip(every[len(keys) :], counted, strict=True))

    def count() -> None:
        done = [future for future in chunks if future.status == "finished"]
        keys = [chunks.pop(future) for future in done]
        for future in set(done) - outputs:
            future.release()
        if counter is not None:
            counter.add(keys)

    keeps = False
    try:
        if counter is not None and counted:
            counter.start(counted)
        if counter is not None or not keep:
            finished = wait(client, futures, count)
            if not keep:
                return list(client.gather(futures))
            if counter is not None and not finished:
                counter.end("failed")  # persisted collections raise errors when they are used
        keeps = True
        return futures
    finally:
        # otherwise the cluster would go on as long as a traceback refers to the futures
        for future in {*every} - (outputs if keeps else set()):
            future.release()


def wait(client: Any, futures: Sequence[Any], look: Callable[[], None]) -> bool:
    """Wait until all futures are done, or one has failed; return whether all have finished.

    `look` is called again and again.
    """
    for turn in itertools.count(1):
        with contextlib.suppress(TimeoutError):
            frisky.wait(futures, timeout=INTERVAL)
            break
        look()
        if any(future.status == "error" for future in futures):
            break
        warn_without_workers(client, turn)
    look()
    return all(future.status == "finished" for future in futures)


def warn_without_workers(client: Any, turn: int) -> None:
    """Warn if a cluster has no workers; `turn` is the number of looks so far."""
    if turn % 10 == 0 and n_threads(client) == 0:
        warn_user(
            "the cluster has no workers, and the run waits for one. If the workers ended during "
            "the run, a UDF may have ended them: their logs say whether they reached their memory "
            "limit"
        )


def n_threads(client: Any) -> int | None:
    """Return the number of threads of all workers; None if the client is closed or lost."""
    stats = client._repr_stats()  # there is no public function
    return None if stats is None else int(stats[1])
