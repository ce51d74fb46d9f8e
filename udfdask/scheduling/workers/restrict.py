"""Sends tasks to the workers that may run them: those that may load a block, or have a device.

The graph is optimized here, before it is sent. The tasks that hold a restriction in their
arguments, and the tasks that only such tasks wait for, are then annotated with it, and marked so
that dask's own optimization, which follows, does not fuse them again.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from dask import base
from dask.core import flatten
from dask.highlevelgraph import HighLevelGraph

from udfdask.graph.dask_internals import TaskLayer, never_fused, optimized_together
from udfdask.scheduling.workers.find_restrictions import Limits, is_limited, limits_of
from udfdask.scheduling.workers.wait_for_workers import Demand, Guard, check_present, workers_of

_PINNED = "pinned"
"""Name of the layer of all tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """How a cluster is to run tasks."""

    annotations: dict[str, Any] = field(default_factory=dict)
    """What tasks are annotated with, by dask's names: functions of keys."""
    options: dict[str, Any]
    """What is passed on to the cluster beside."""

    def annotated(self) -> AbstractContextManager[None]:
        """Return the context in which a client keeps to them."""
        context: AbstractContextManager[None] = base.annotate(**self.annotations)
        return context if self.annotations else nullcontext()


@dataclass(frozen=True, slots=True)
class ByKey:
    """Tells a scheduler what a task is annotated with."""

    where: dict[Any, Any]
    """Values by key."""
    otherwise: Any
    """The value of all other tasks, or a function of their keys: what the user asked for."""

    def __call__(self, key: Any) -> Any:
        """Return the value of a task."""
        return self.where[key] if key in self.where else _of(self.otherwise, key)


def pin(
    results: tuple[Any, ...], client: Any, options: Mapping[str, Any]
) -> tuple[tuple[Any, ...], Orders, Guard | None]:
    """Take what a cluster is to compute with some options; return it pinned.

    And how it is to be computed, and what watches over the workers that it needs, if it needs any.
    """
    collections, repack = base.unpack_collections(*results)
    if not any(is_limited(collection.__dask_graph__()) for collection in collections):
        return results, Orders(options=dict(options)), None
    wanted = optimized_together(collections)
    tasks = wanted.tasks
    limits = limits_of(tasks, wanted.keys)
    guard = Guard(client)
    orders = make_orders(limits, client, options, guard)
    # dask optimizes once more, which must not fuse these tasks into others
    for key in (*limits.workers, *limits.groups):
        tasks[key] = never_fused(tasks[key])
    graph = _in_one_layer(tasks | wanted.futures, collections)
    pinned = []
    for collection in collections:
        rebuild, state = collection.__dask_postpersist__()
        pinned.append(rebuild(graph, *state))
    packed: tuple[Any, ...] = repack(pinned)
    return packed, orders, guard if limits else None


def _in_one_layer(tasks: dict[Any, Any], collections: Any) -> HighLevelGraph:
    """Return a graph with all tasks in one layer.

    Layers that follow the names of keys could depend on each other both ways, as those of a
    Cholesky decomposition do. Collections look for layers by name. These are there too, empty: the
    layers of their names, and for delayed values and items of bags the layer named like their key.
    """
    layers = {_PINNED: TaskLayer(tasks)}
    for collection in collections:
        first = next(flatten(collection.__dask_keys__()))
        for name in (*collection.__dask_layers__(), first):
            layers[name] = TaskLayer({})
    return HighLevelGraph(layers, {name: {_PINNED} - {name} for name in layers})


def make_orders(limits: Limits, client: Any, options: Mapping[str, Any], guard: Guard) -> Orders:
    """Take the limits of tasks and what the user asks for; return how a cluster is to run them.

    Raise if none of the workers that may run a task is there, as far as they will not come.
    """
    given, left = base.get_annotations(), dict(options)
    loose = options.get("allow_other_workers") or given.get("allow_other_workers") or False
    if loose is False:
        check_present(limits.workers, client)
    workers = ByKey(limits.workers, given.get("workers") or [])
    demands = {
        key: Demand(workers=tuple(sorted(allowed)))
        for key, allowed in limits.workers.items()
        if not _of(loose, key) and not _listed(options.get("workers"))
    }
    if not limits.groups:
        guard.require(demands)
        return Orders(annotations={"workers": workers} if limits.workers else {}, options=left)
    # what a cluster would put in the place of annotations
    for name in ("workers", "allow_other_workers", "resources"):
        left.pop(name, None)
    if _listed(options.get("workers")):
        workers = ByKey({}, options["workers"])
    asked = options.get("resources") or given.get("resources") or {}
    needs = {key: {**group.resources, **_of(asked, key)} for key, group in limits.groups.items()}
    for key, group in limits.groups.items():
        demands[key] = Demand(
            udfs=group.names, resources=_pairs(needs[key]), workers=_listed(workers(key))
        )
    wished = {key for key in needs if _of(loose, key)}
    if wished:  # a wish for the data only: no other worker can run the task
        present = workers_of(client)
        vain = {d for d in set(map(demands.get, wished)) if d and not d.is_met_in(present)}
        free = [key for key in wished if demands[key] in vain]
        workers = ByKey({**workers.where, **{key: [] for key in free}}, workers.otherwise)
        demands.update({key: demands[key].anywhere for key in free})
    guard.require(demands)
    annotations = {
        "workers": workers,
        "resources": ByKey(needs, asked),
        "allow_other_workers": ByKey(dict.fromkeys(needs, False), loose),
    }
    return Orders(annotations=annotations, options=left)


def _of(value: Any, key: Any) -> Any:
    """Return an annotation of a task: the value itself, or what a function of keys gives."""
    return value(key) if callable(value) else value


def _pairs(resources: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    """Return resources as a value."""
    return tuple(sorted(resources.items()))


def _listed(workers: Any) -> tuple[str | int, ...]:
    """Return one worker or several, by address or name, as a value; none for None."""
    if workers is None:
        return ()
    given = [workers] if isinstance(workers, (str, int)) else workers
    return tuple(sorted(given, key=str))
