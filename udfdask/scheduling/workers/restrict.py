"""Restrict tasks to the workers that can run them: they can load a block, or have a device.

The graph is optimized here, before it is sent. Tasks with a restriction in their arguments, and
tasks whose results only such tasks use, are then annotated. They are also marked, so that dask's
own optimization, which follows, does not fuse them again.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from dask import base

from udfdask.graph.dask_internals.layers import in_one_layer
from udfdask.graph.dask_internals.running import optimized_together
from udfdask.graph.dask_internals.tasks import never_fused
from udfdask.scheduling.workers.check_workers import (
    Demand,
    check_demands,
    worker_names,
    workers_of,
)
from udfdask.scheduling.workers.find_restrictions import (
    Restrictions,
    find_restrictions,
    is_restricted,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """Annotations and options with which tasks are sent to a cluster."""

    annotations: dict[str, Any] = field(default_factory=dict)
    """Annotations of tasks by dask's names, as functions of keys."""
    options: dict[str, Any]
    """Extra keyword arguments for methods of the client, such as `Client.compute`."""

    def annotated(self) -> AbstractContextManager[None]:
        """Return a context in which a client sends the annotations."""
        context: AbstractContextManager[None] = base.annotate(**self.annotations)
        return context if self.annotations else nullcontext()


@dataclass(frozen=True, slots=True)
class ByKey:
    """A function that returns the annotation of a task."""

    by_key: dict[Any, Any]
    """Annotations of some tasks by key."""
    default: Any
    """The annotation of all other tasks, or a function of their keys: the user's request."""

    def __call__(self, key: Any) -> Any:
        """Return the annotation of a task."""
        return self.by_key[key] if key in self.by_key else _of(self.default, key)


def restrict(
    results: tuple[Any, ...], client: Any, options: Mapping[str, Any]
) -> tuple[tuple[Any, ...], ClusterOptions]:
    """Return collections with restricted tasks, and the options to send them."""
    collections, repack = base.unpack_collections(*results)
    if not any(is_restricted(collection.__dask_graph__()) for collection in collections):
        return results, ClusterOptions(options=dict(options))
    optimized = optimized_together(collections)
    tasks = optimized.tasks
    restrictions = find_restrictions(tasks, optimized.keys)
    cluster_options = make_cluster_options(restrictions, client, options)
    # dask will optimize the graph again, and must not fuse these tasks with others
    for key in (*restrictions.workers, *restrictions.groups):
        tasks[key] = never_fused(tasks[key])
    graph = in_one_layer(tasks | optimized.futures, collections)
    restricted = []
    for collection in collections:
        rebuild, state = collection.__dask_postpersist__()
        restricted.append(rebuild(graph, *state))
    packed: tuple[Any, ...] = repack(restricted)
    return packed, cluster_options


def make_cluster_options(
    restrictions: Restrictions, client: Any, options: Mapping[str, Any]
) -> ClusterOptions:
    """Return the annotations and options that combine restrictions with the user's options.

    Raise if no existing worker can run a task and no suitable worker can be expected.
    """
    user_annotations, remaining = base.get_annotations(), dict(options)
    allow_others = (
        options.get("allow_other_workers") or user_annotations.get("allow_other_workers") or False
    )
    workers = ByKey(restrictions.workers, user_annotations.get("workers") or [])
    demands = {
        key: Demand(workers=tuple(sorted(allowed)))
        for key, allowed in restrictions.workers.items()
        if not _of(allow_others, key) and not worker_names(options.get("workers"))
    }
    if not restrictions.groups:
        check_demands(demands.values(), client)
        annotations = {"workers": workers} if restrictions.workers else {}
        return ClusterOptions(annotations=annotations, options=remaining)
    # as keyword arguments, these would replace the annotations
    for name in ("workers", "allow_other_workers", "resources"):
        remaining.pop(name, None)
    if worker_names(options.get("workers")):
        workers = ByKey({}, options["workers"])
    asked = options.get("resources") or user_annotations.get("resources") or {}
    needs = {k: {**group.resources, **_of(asked, k)} for k, group in restrictions.groups.items()}
    for key, group in restrictions.groups.items():
        resources = tuple(sorted(needs[key].items()))
        names = worker_names(workers(key))
        demands[key] = Demand(udfs=group.names, resources=resources, workers=names)
    preferred = {key for key in needs if _of(allow_others, key)}
    if preferred:
        # The workers are a preference, but the resources are not. If no worker satisfies both, drop
        # the preference: dask would send the task to a worker without a device.
        present = workers_of(client)
        unmet = {d for d in set(map(demands.get, preferred)) if d and not d.is_met_in(present)}
        anywhere = [key for key in preferred if demands[key] in unmet]
        workers = ByKey({**workers.by_key, **{key: [] for key in anywhere}}, workers.default)
        demands.update({key: demands[key].anywhere for key in anywhere})
    check_demands(demands.values(), client)
    annotations = {
        "workers": workers,
        "resources": ByKey(needs, asked),
        "allow_other_workers": ByKey(dict.fromkeys(needs, False), allow_others),
    }
    return ClusterOptions(annotations=annotations, options=remaining)


def _of(value: Any, key: Any) -> Any:
    """Return the annotation of a task: the value itself, or the value of a function of keys."""
    return value(key) if callable(value) else value
