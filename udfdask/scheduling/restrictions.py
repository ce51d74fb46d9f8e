"""Restrict tasks to the workers that can run them, and raise if a cluster has none.

Some tasks load placed blocks, or need a device. The restriction is an argument of a task: dask
loses annotations of layers when it fuses tasks, but it keeps arguments. So the graph is optimized
here, before it is sent. Tasks with a restriction in their arguments, and tasks whose results only
such tasks use, are annotated, and marked so that dask's own optimization does not fuse them again.

The tasks that load data for a device (law 11) are upstream of a chunk task. The search stops at the
parameters of the chunk task, at tasks that end another run (an output or a merge), at tasks on
which other tasks depend, and at values that the caller needs. Aux data and parameters run anywhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from dask import base, config
from dask.core import reverse_dict

from udfdask.errors import ArgumentValueError, DeviceError
from udfdask.graph.chunk_layers import PLACED_LAYER
from udfdask.graph.dask_internals.expressions import as_dask, in_kind_of
from udfdask.graph.dask_internals.layers import TaskLayer, in_one_layer, optimized_together
from udfdask.graph.dask_internals.tasks import (
    OutputTask,
    alias_target,
    never_fused,
    task_contents,
)
from udfdask.plan.groups import CUDA_CHUNK_LAYER, Group
from udfdask.scheduling.on_workers import Placement

T = TypeVar("T")


def restrict(
    results: tuple[Any, ...], client: Any, options: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any], dict[str, Any]]:
    """Return collections with restricted tasks, and the annotations and options to send them."""
    collections, repack = base.unpack_collections(*results)
    found = Restrictions(workers={}, groups={})
    plain = [*map(as_dask, collections)]
    restricted = any(restricted_layers(collection.__dask_graph__()) for collection in plain)
    if restricted:
        tasks, futures, keys = optimized_together(plain)
        found = find_restrictions(tasks, keys)
    check_workers(options, client, bool(found.groups))
    if not restricted:
        _check_annotations(plain, client, options)
        return results, {}, dict(options)
    annotations, rest = make_cluster_options(found, client, options)
    # dask will optimize the graph again, and must not fuse these tasks with others
    for key in (*found.workers, *found.groups):
        tasks[key] = never_fused(tasks[key])
    changed = in_one_layer(plain, tasks | futures)
    packed: tuple[Any, ...] = repack([*map(in_kind_of, collections, changed)])
    return packed, annotations, rest


@dataclass(frozen=True, slots=True, kw_only=True)
class Restrictions:
    """Restricted tasks by key."""

    workers: dict[Any, list[str]]
    """The workers that can run a task."""
    groups: dict[Any, Group]
    """The UDFs that a task runs, or for which it loads data."""


def restricted_layers(graph: Any) -> set[str]:
    """Return the names of the layers of a graph that have placed blocks or need a device."""
    layers = getattr(graph, "layers", {})
    names = set(map(str, layers))
    for layer in layers.values():
        if type(layer) is TaskLayer:  # dask.optimize makes one layer of all tasks
            names |= {layer_name(key) for key in layer}
    return {name for name in names if PLACED_LAYER in name or CUDA_CHUNK_LAYER in name}


def find_restrictions(tasks: Mapping[Any, Any], results: Collection[Any]) -> Restrictions:
    """Return the restrictions of optimized tasks; `results` are the keys that the caller needs."""
    workers: dict[Any, set[str]] = {}
    groups: dict[Any, Group] = {}
    for key, task in tasks.items():
        arguments = list(_restricting_arguments(task))
        placed = {a.workers for a in arguments if isinstance(a, Placement) and a.workers}
        if placed:
            workers[key] = set.intersection(*map(set, placed))
            if not workers[key]:
                raise ArgumentValueError(
                    f"task {key!r} loads several blocks, but no worker can load all of them: they "
                    f"are on {sorted(placed)[:4]}. Allow one worker to load all of them, or "
                    "rechunk the arrays"
                )
        for_device = [a for a in arguments if isinstance(a, Group) and a.needs_cuda]
        if for_device:
            groups[key] = for_device[0]
    if groups:  # a fused task has a new key, and its old key is an alias
        aliases = {key: alias_target(task) for key, task in tasks.items()}
        groups |= {key: groups[target] for key, target in aliases.items() if target in groups}
    if workers or groups:
        users = reverse_dict({key: task.dependencies & tasks.keys() for key, task in tasks.items()})
        wanted = frozenset(results)

        def group_of(key: Any, of_users: list[Group]) -> Group | None:
            """Parameters, outputs of other UDFs and results for the caller have none."""
            others = key in wanted or isinstance(tasks[key], OutputTask)
            group = of_users[0]
            return None if others or layer_name(key) in group.parameter_layers else group

        _extend(workers, tasks, users, lambda _, of_users: set.intersection(*of_users) or None)
        _extend(groups, tasks, users, group_of)
    return Restrictions(workers={key: sorted(w) for key, w in workers.items()}, groups=groups)


def layer_name(key: Any) -> str:
    """Return the name of a task's layer."""
    return str(key[0] if isinstance(key, tuple) else key)


def _extend(
    marks: dict[Any, T],
    tasks: Mapping[Any, Any],
    users: Mapping[Any, set[Any]],
    mark_of: Callable[[Any, list[T]], T | None],
) -> None:
    """Mark tasks whose results only marked tasks use, by their key and the marks of these."""
    todo = list(marks)
    while todo:
        for key in tasks[todo.pop()].dependencies:
            if key in tasks and key not in marks and users[key] <= marks.keys():
                mark = mark_of(key, [marks[user] for user in users[key]])
                if mark is not None:
                    marks[key] = mark
                    todo.append(key)


def _restricting_arguments(part: Any) -> Iterator[Placement | Group]:
    """Yield the restrictions in the arguments of a task and of the tasks fused into it."""
    if isinstance(part, (Placement, Group)):
        yield part
        return
    parts: Iterable[Any] = task_contents(part) or ()
    if isinstance(part, dict):
        parts = part.values()
    elif isinstance(part, (list, tuple)):
        parts = part
    for each in parts:
        yield from _restricting_arguments(each)


def make_cluster_options(
    restrictions: Restrictions, client: Any, options: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return annotations for restrictions and the user's options, and the other options."""
    rest, groups = dict(options), restrictions.groups
    if not (restrictions.workers or groups):
        return {}, rest
    # as keyword arguments, these would replace the annotations
    given = {name: rest.pop(name, None) for name in ("workers", "allow_other_workers", "resources")}
    user = {**base.get_annotations(), **{name: value for name, value in given.items() if value}}
    placed = {} if given["workers"] else restrictions.workers
    allow_others, asked = user.get("allow_other_workers") or False, user.get("resources") or {}
    needs = {key: {**group.resources, **_of(asked, key)} for key, group in groups.items()}
    # Then workers are a preference, but resources are not: dask would send the task to a worker
    # without a device.
    anywhere: dict[Any, Any] = {key: [] for key in needs if _of(allow_others, key)}
    workers = partial(_annotation, {**placed, **anywhere}, user.get("workers") or [])
    demands = [
        _Demand(workers=tuple(names))
        for key, names in placed.items()
        if key not in needs and not _of(allow_others, key)
    ]
    for key, group in groups.items():
        resources, names = tuple(sorted(needs[key].items())), _worker_names(workers(key))
        demands.append(_Demand(udfs=group.names, resources=resources, workers=names))
    _check_demands(demands, client)
    annotations = {
        "workers": workers,
        "resources": partial(_annotation, needs, asked),
        "allow_other_workers": partial(_annotation, dict.fromkeys(needs, False), allow_others),
    }
    return annotations, rest


def _of(value: Any, key: Any) -> Any:
    """Return the annotation of a task: the value itself, or the value of a function of keys."""
    return value(key) if callable(value) else value


def _annotation(by_key: dict[Any, Any], default: Any, key: Any) -> Any:
    """Return the annotation of a restricted task by its key, or what the user asks for others."""
    return by_key[key] if key in by_key else _of(default, key)


def check_workers(options: Mapping[str, Any], client: Any, need_device: bool) -> None:
    """Raise if no worker has the `resources`, or is one of the `workers`, in options of a call.

    Raise also if all workers have ended.

    If UDFs need a device, their tasks are checked instead: the error names these UDFs.
    """
    if _has_ended(client):
        raise ArgumentValueError(
            "the cluster has no worker left: all workers that it started have ended. An interrupt, "
            "such as Ctrl-C or Stop in a notebook, also ends those of a LocalCluster. Close the "
            "client and the cluster, and make new ones; workers ignore interrupts with LocalCluster"
            "(preload='import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)')"
        )
    wanted = {**base.get_annotations(), **{name: value for name, value in options.items() if value}}
    if need_device:
        wanted.pop("resources", None)
    _check_demands([_demand_of(wanted)], client)


def _check_annotations(plain: Iterable[Any], client: Any, options: Mapping[str, Any]) -> None:
    """Raise if no worker can run the layers that were made in a `dask.annotate`.

    dask loses these annotations if it fuses the tasks of layers, as it does by default.
    """
    if options.get("optimize_graph", True) and config.get("optimization.fuse.active") is not False:
        return
    graphs = [getattr(one.__dask_graph__(), "layers", {}) for one in plain]
    layers = [layer for graph in graphs for layer in graph.values()]
    _check_demands([_demand_of(layer.annotations or {}) for layer in layers], client)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Demand:
    """The resources and workers that some tasks need."""

    udfs: tuple[str, ...] = ()
    """Names of the UDFs that need the resources."""
    resources: tuple[tuple[str, float], ...] = ()
    """Resources by name, in the amount that each task takes."""
    workers: tuple[str | int, ...] = ()
    """Addresses, names or hosts of the workers that can run the tasks; any worker if empty."""

    def is_met_by(self, address: str, worker: Mapping[str, Any]) -> bool:
        """Return whether a worker, as a scheduler describes it, can run the tasks."""
        has = worker["resources"]
        # the name of the first worker of a LocalCluster is the number 0; "0" would be a host
        names = {address, address.removeprefix("tcp://"), worker["id"], worker["host"]}
        return all(has.get(name, 0) >= amount for name, amount in self.resources) and (
            not self.workers or not names.isdisjoint(self.workers)
        )


def _demand_of(annotations: Mapping[str, Any]) -> _Demand:
    """Return what annotations ask for; those that are functions of keys ask for nothing."""
    resources = annotations.get("resources") or {}
    anywhere = annotations.get("allow_other_workers")
    return _Demand(
        resources=() if callable(resources) else tuple(sorted(resources.items())),
        workers=() if anywhere else _worker_names(annotations.get("workers")),
    )


def _check_demands(demands: Iterable[_Demand], client: Any) -> None:
    """Raise if no worker meets a demand; an empty or adaptive cluster may still get one."""
    asked = {demand for demand in demands if demand.resources or demand.workers}
    if not asked or _is_adaptive(client):
        return
    workers = workers_of(client)
    for demand in sorted(asked, key=lambda demand: (not demand.udfs, str(demand))):
        if workers and not any(demand.is_met_by(*worker) for worker in workers.items()):
            raise _error(demand, workers)


def _is_adaptive(client: Any) -> bool:
    adaptive = getattr(getattr(client, "cluster", None), "_adaptive", None)
    return getattr(adaptive, "periodic_callback", None) is not None


ENDED = {"closing_gracefully", "closing", "closed", "failed"}
"""Names of the states of a worker that has ended, or soon will."""


def _has_ended(client: Any) -> bool:
    """Return whether all workers that a cluster of this process has started have ended."""
    cluster: Any = getattr(client, "cluster", None)
    if not getattr(cluster, "worker_spec", None) or _is_adaptive(client):
        return False

    def none_left() -> bool:
        starting = cluster._lock.locked() or cluster._correct_state_waiting
        return not starting and all(one.status.name in ENDED for one in tuple(cluster._created))

    if not none_left() or cluster.status.name != "running" or workers_of(client):
        return False
    cluster.sync(asyncio.sleep, 0)  # a `scale` just before begins to start workers now
    return none_left()


def workers_of(client: Any) -> Mapping[str, Any]:
    """Return the workers of a cluster by address, as its scheduler describes them."""
    # not client.scheduler_info(): every two seconds, the client replaces this information by one
    # without workers
    workers: Mapping[str, Any] = client.sync(client.scheduler.identity, n_workers=-1)["workers"]
    return workers


def _worker_names(workers: Any) -> tuple[str | int, ...]:
    """Return one or several addresses or names of workers as a tuple; empty for a function."""
    if not workers or callable(workers):
        return ()
    given = [workers] if isinstance(workers, (str, int)) else workers
    return tuple(sorted(given, key=str))


def _error(demand: _Demand, workers: Mapping[str, Any]) -> ArgumentValueError | DeviceError:
    """Return the error for a missing worker."""
    tags = ",".join(f"{name}={amount:g}" for name, amount in sorted(demand.resources))
    needs = f" among {list(demand.workers)}" * bool(demand.workers)
    needs += f" with the resources {tags}" * bool(tags)
    there = [
        f"{address} (name {worker['id']!r}, resources {worker['resources']})"
        for address, worker in list(workers.items())[:8]
    ]
    text = f"tasks need a worker{needs}, but the cluster has {', '.join(there)}"
    if demand.udfs:
        return DeviceError(
            f"{', '.join(demand.udfs)} can run only on a CUDA device: the {text}. Start such a "
            f"worker, 'dask worker <scheduler> --resources {tags}' on a machine with a device; "
            "or let the UDF run without a device: return 'numpy' in its get_backends(), and "
            "include it in backends= if you pass that"
        )
    return ArgumentValueError(
        f"{text}: start such a worker, correct workers= or resources=, or pass "
        "allow_other_workers=True"
    )
