"""Which tasks of a graph may run on some workers only: they load placed blocks, or need a device.

An argument of a task says so. dask loses the annotations of layers when it fuses tasks; an
argument stays with the code, whatever it is fused into.

The tasks that load data for a device (law 11) are those upstream of a chunk task. The search stops
at the chunk task's parameters, at tasks that end another run (an output or a merge), at tasks that
something else waits for, and at values that the caller wants. Aux data and parameters run
anywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dask import base
from dask.core import reverse_dict

from udfdask.errors import ArgumentValueError
from udfdask.graph.chunk_layers import ChunkBlockwise, ChunkTasks
from udfdask.graph.dask_internals import OutputTask, TaskLayer, alias_target, task_contents
from udfdask.plan.device_groups import CUDA_CHUNK_LAYER, Group
from udfdask.scheduling.workers.block_placement import PREFIX, Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Tasks that may not run anywhere, by key."""

    workers: dict[Any, list[str]]
    """The workers that may run a task."""
    groups: dict[Any, Group]
    """The UDFs whose needs are those of a task: it runs them, or loads their data."""

    def __bool__(self) -> bool:
        return bool(self.workers or self.groups)


NONE = Limits(workers={}, groups={})
"""Of tasks that may all run anywhere."""


def is_limited(graph: Any) -> bool:
    """Whether any array in a graph has been placed, or any UDF in it needs a device.

    For the graphs of most computations, whose tasks then need not be looked through.
    """
    layers = getattr(graph, "layers", {})
    names = set(map(str, layers))
    for layer in layers.values():
        if type(layer) is TaskLayer:  # dask.optimize leaves one with all tasks
            names |= {layer_name(key) for key in layer}
    return any(PREFIX in name or CUDA_CHUNK_LAYER in name for name in names)


def needy_udfs(results: Any) -> list[str]:
    """Return the names of the UDFs that need a device, in whatever their results are nested."""
    collections, _ = base.unpack_collections(*results)
    groups = [
        group_of(layer)
        for collection in collections
        for layer in getattr(collection.__dask_graph__(), "layers", {}).values()
    ]
    return sorted({name for group in groups if group is not None for name in group.names})


def group_of(layer: Any) -> Group | None:
    """Return the UDFs of a layer of a graph, if they need a device and see any chunk."""
    if isinstance(layer, (ChunkBlockwise, ChunkTasks)):
        visits = layer.info
        if visits.group is not None and visits.group.needs_cuda and visits.chunks:
            return visits.group
    return None


def limits_of(tasks: Mapping[Any, Any], wanted: Collection[Any]) -> Limits:
    """Take optimised tasks by key and the keys of results; return which may not run anywhere."""
    workers: dict[Any, set[str]] = {}
    groups: dict[Any, Group] = {}
    for key, task in tasks.items():
        found = list(_marks(task))
        placements = [set(mark.workers) for mark in found if isinstance(mark, Placement)]
        if any(placements):
            workers[key] = _common(key, [allowed for allowed in placements if allowed])
        needy = [mark for mark in found if isinstance(mark, Group) and mark.needs_cuda]
        if needy:
            groups[key] = needy[0]
    if groups:  # what has been fused goes by another name, and an alias by the old one
        aliases = {key: alias_target(task) for key, task in tasks.items()}
        groups |= {key: groups[target] for key, target in aliases.items() if target in groups}
    if workers or groups:
        users = reverse_dict({key: task.dependencies & tasks.keys() for key, task in tasks.items()})
        _place_loading(workers, tasks, users)
        _tag_loading(groups, tasks, users, frozenset(wanted))
    return Limits(workers={key: sorted(w) for key, w in workers.items()}, groups=groups)


def layer_name(key: Any) -> str:
    """Take a task's key; return the name of the layer it is in."""
    return str(key[0] if isinstance(key, tuple) else key)


def _common(key: Any, placements: list[set[str]]) -> set[str]:
    """Return the workers that may load all blocks of a task."""
    allowed = set.intersection(*placements)
    if not allowed:
        raise ArgumentValueError(
            f"task {key!r} loads blocks of several arrays of which no worker may load all: "
            f"{placements}. Let one worker load all of them, or rechunk one of the arrays"
        )
    return allowed


def _place_loading(
    found: dict[Any, set[str]], tasks: Mapping[Any, Any], users: Mapping[Any, set[Any]]
) -> None:
    """Add to the workers of tasks those of the tasks that no others wait for.

    A block that several tasks use is not fused with its loading.
    """
    todo = list(found)
    while todo:
        for key in tasks[todo.pop()].dependencies:
            if key in tasks and key not in found and all(user in found for user in users[key]):
                allowed = set.intersection(*(found[user] for user in users[key]))
                if allowed:
                    found[key] = allowed
                    todo.append(key)


def _tag_loading(
    found: dict[Any, Group],
    tasks: Mapping[Any, Any],
    users: Mapping[Any, set[Any]],
    wanted: frozenset[Any],
) -> None:
    """Add to the tasks of needy UDFs those that load data for these alone.

    Neither their parameters, nor what other UDFs have made of the data, nor what the caller wants.
    """
    todo = list(found)
    while todo:
        user = todo.pop()
        group = found[user]
        for key in tasks[user].dependencies:
            if (
                key in tasks
                and key not in found
                and key not in wanted
                and layer_name(key) not in group.parameter_layers
                and not isinstance(tasks[key], OutputTask)
                and all(user in found for user in users[key])
            ):
                found[key] = group
                todo.append(key)


def _marks(part: Any) -> Iterator[Placement | Group]:
    """Yield what limits a task, in it, in those that are fused into it and in their arguments."""
    if isinstance(part, (Placement, Group)):
        yield part
        return
    parts: Iterable[Any] = task_contents(part) or ()
    if isinstance(part, dict):
        parts = part.values()
    elif isinstance(part, (list, tuple)):
        parts = part
    for each in parts:
        yield from _marks(each)
