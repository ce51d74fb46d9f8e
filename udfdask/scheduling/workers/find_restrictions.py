"""Find tasks restricted to particular workers: they load placed blocks, or need a device.

The restriction is an argument of a task. dask loses annotations of layers when it fuses tasks, but
it keeps arguments.

The tasks that load data for a device (law 11) are upstream of a chunk task. The search stops at the
parameters of the chunk task, at tasks that end another run (an output or a merge), at tasks on
which other tasks depend, and at values that the caller needs. Aux data and parameters run anywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dask import base
from dask.core import reverse_dict

from udfdask.errors import ArgumentValueError
from udfdask.graph.chunk_layers import PLACED_LAYER, ChunkBlockwise, ChunkTasks
from udfdask.graph.dask_internals.layers import TaskLayer
from udfdask.graph.dask_internals.tasks import OutputTask, alias_target, task_contents
from udfdask.plan.device_groups import CUDA_CHUNK_LAYER, Group
from udfdask.scheduling.workers.block_placement import Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Restrictions:
    """Restricted tasks by key."""

    workers: dict[Any, list[str]]
    """The workers that can run a task."""
    groups: dict[Any, Group]
    """The UDFs that a task runs, or for which it loads data."""

    def __bool__(self) -> bool:
        return bool(self.workers or self.groups)


NO_RESTRICTIONS = Restrictions(workers={}, groups={})


def is_restricted(graph: Any) -> bool:
    """Return whether a graph contains a placed array or a UDF that needs a device.

    This looks only at the names of layers. Most graphs have no restrictions, so that their tasks do
    not have to be searched.
    """
    layers = getattr(graph, "layers", {})
    names = set(map(str, layers))
    for layer in layers.values():
        if type(layer) is TaskLayer:  # dask.optimize makes one layer of all tasks
            names |= {layer_name(key) for key in layer}
    return any(PLACED_LAYER in name or CUDA_CHUNK_LAYER in name for name in names)


def layers_of(collections: Any) -> dict[str, Any]:
    """Return the layers of the graphs of nested dask collections by name."""
    layers: dict[str, Any] = {}
    for collection in base.unpack_collections(collections)[0]:
        layers |= getattr(collection.__dask_graph__(), "layers", {})
    return layers


def device_udfs(collections: Any) -> list[str]:
    """Return the names of the UDFs that need a device in dask collections."""
    names: set[str] = set()
    for layer in layers_of(collections).values():
        group = layer.group if isinstance(layer, (ChunkBlockwise, ChunkTasks)) else None
        # the keys of all chunks are listed only if it needs a device
        if group is not None and group.needs_cuda and layer.info.chunks:
            names.update(group.names)
    return sorted(names)


def find_restrictions(tasks: Mapping[Any, Any], results: Collection[Any]) -> Restrictions:
    """Return the restrictions of optimized tasks; `results` are the keys that the caller needs."""
    workers: dict[Any, set[str]] = {}
    groups: dict[Any, Group] = {}
    for key, task in tasks.items():
        arguments = list(_restricting_arguments(task))
        placements = [set(a.workers) for a in arguments if isinstance(a, Placement)]
        if any(placements):
            workers[key] = _common_workers(key, [allowed for allowed in placements if allowed])
        for_device = [a for a in arguments if isinstance(a, Group) and a.needs_cuda]
        if for_device:
            groups[key] = for_device[0]
    if groups:  # a fused task has a new key, and its old key is an alias
        aliases = {key: alias_target(task) for key, task in tasks.items()}
        groups |= {key: groups[target] for key, target in aliases.items() if target in groups}
    if workers or groups:
        users = reverse_dict({key: task.dependencies & tasks.keys() for key, task in tasks.items()})
        _extend_workers(workers, tasks, users)
        _extend_groups(groups, tasks, users, frozenset(results))
    return Restrictions(workers={key: sorted(w) for key, w in workers.items()}, groups=groups)


def layer_name(key: Any) -> str:
    """Return the name of a task's layer."""
    return str(key[0] if isinstance(key, tuple) else key)


def _common_workers(key: Any, placements: list[set[str]]) -> set[str]:
    """Return the workers that can load all blocks of a task."""
    allowed = set.intersection(*placements)
    if not allowed:
        different = sorted({tuple(sorted(placement)) for placement in placements})[:4]
        raise ArgumentValueError(
            f"task {key!r} loads several blocks, but no worker can load all of them: they are "
            f"on {different}. Allow one worker to load all of them, or rechunk the arrays"
        )
    return allowed


def _extend_workers(
    workers: dict[Any, set[str]], tasks: Mapping[Any, Any], users: Mapping[Any, set[Any]]
) -> None:
    """Restrict tasks whose results only restricted tasks use.

    If several tasks use a block, dask does not fuse it with its loading.
    """
    todo = list(workers)
    while todo:
        for key in tasks[todo.pop()].dependencies:
            if key in tasks and key not in workers and users[key] <= workers.keys():
                allowed = set.intersection(*(workers[user] for user in users[key]))
                if allowed:
                    workers[key] = allowed
                    todo.append(key)


def _extend_groups(
    groups: dict[Any, Group],
    tasks: Mapping[Any, Any],
    users: Mapping[Any, set[Any]],
    results: frozenset[Any],
) -> None:
    """Add tasks that load data only for UDFs that need a device.

    Parameters, outputs of other UDFs and results for the caller are not added.
    """
    todo = list(groups)
    while todo:
        user = todo.pop()
        group = groups[user]
        for key in tasks[user].dependencies:
            if (
                key in tasks
                and key not in groups
                and key not in results
                and layer_name(key) not in group.parameter_layers
                and not isinstance(tasks[key], OutputTask)
                and users[key] <= groups.keys()
            ):
                groups[key] = group
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
