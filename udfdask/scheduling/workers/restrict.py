"""Restrict tasks to the workers that can run them: they can load a block, or have a device.

The graph is optimized here, before it is sent. Tasks with a restriction in their arguments, and
tasks whose results only such tasks use, are then annotated. They are also marked, so that dask's
own optimization, which follows, does not fuse them again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dask import base

from udfdask.graph.dask_internals.layers import in_one_layer, optimized_together
from udfdask.graph.dask_internals.tasks import never_fused
from udfdask.scheduling.workers.check_workers import Demand, check_demands, worker_names
from udfdask.scheduling.workers.find_restrictions import (
    Restrictions,
    find_restrictions,
    is_restricted,
)


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
) -> tuple[tuple[Any, ...], dict[str, Any], dict[str, Any]]:
    """Return collections with restricted tasks, and the annotations and options to send them."""
    collections, repack = base.unpack_collections(*results)
    if not any(is_restricted(collection.__dask_graph__()) for collection in collections):
        return results, {}, dict(options)
    optimized = optimized_together(collections)
    tasks = optimized.tasks
    restrictions = find_restrictions(tasks, optimized.keys)
    annotations, rest = make_cluster_options(restrictions, client, options)
    # dask will optimize the graph again, and must not fuse these tasks with others
    for key in (*restrictions.workers, *restrictions.groups):
        tasks[key] = never_fused(tasks[key])
    graph = in_one_layer(tasks | optimized.futures, collections)
    restricted = []
    for collection in collections:
        rebuild, state = collection.__dask_postpersist__()
        restricted.append(rebuild(graph, *state))
    packed: tuple[Any, ...] = repack(restricted)
    return packed, annotations, rest


def make_cluster_options(
    restrictions: Restrictions, client: Any, options: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return annotations that combine restrictions with the user's options, and the other options.

    Raise if no existing worker can run a task and no suitable worker can be expected.
    """
    rest = dict(options)
    if not restrictions:
        return {}, rest
    # as keyword arguments, these would replace the annotations
    given = {name: rest.pop(name, None) for name in ("workers", "allow_other_workers", "resources")}
    user = {**base.get_annotations(), **{name: value for name, value in given.items() if value}}
    placed = {} if given["workers"] else restrictions.workers
    allow_others, asked = user.get("allow_other_workers") or False, user.get("resources") or {}
    groups = restrictions.groups
    needs = {key: {**group.resources, **_of(asked, key)} for key, group in groups.items()}
    # Then workers are a preference, but resources are not: dask would send the task to a worker
    # without a device.
    anywhere: dict[Any, Any] = {key: [] for key in needs if _of(allow_others, key)}
    workers = ByKey({**placed, **anywhere}, user.get("workers") or [])
    demands = [
        Demand(workers=tuple(names))
        for key, names in placed.items()
        if key not in needs and not _of(allow_others, key)
    ]
    for key, group in groups.items():
        resources = tuple(sorted(needs[key].items()))
        names = worker_names(workers(key))
        demands.append(Demand(udfs=group.names, resources=resources, workers=names))
    check_demands(demands, client)
    annotations = {
        "workers": workers,
        "resources": ByKey(needs, asked),
        "allow_other_workers": ByKey(dict.fromkeys(needs, False), allow_others),
    }
    return annotations, rest


def _of(value: Any, key: Any) -> Any:
    """Return the annotation of a task: the value itself, or the value of a function of keys."""
    return value(key) if callable(value) else value
