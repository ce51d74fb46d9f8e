"""Tasks: make them, look into them, take them apart, join them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dask._task_spec import (
    Alias,
    DataNode,
    GraphNode,
    List,
    Task,
    TaskRef,
    convert_legacy_graph,
    cull,
)
from dask.blockwise import Blockwise

__all__ = ["List", "Task", "TaskRef", "cull"]

Key = tuple[Any, ...]
"""Key of a task: the name of its layer first."""


class OutputTask(Task):
    """A task that is never fused with the task it reads from.

    All tasks after the chunks are of this class, which keeps law 2. `dask.optimize` optimizes each
    collection separately: if two results of one chunk task were each fused with it, it would run
    twice. Chunk tasks are not: they must be fused with the loading of their block, or a process
    pool would send every block twice.
    """

    __slots__ = ()

    @property
    def block_fusion(self) -> bool:
        """Tell dask not to fuse this task."""
        return True


def never_fused(task: Any) -> Any:
    """Return a task as one that dask does not fuse with others; aliases and data as they are."""
    if type(task) is not Task:
        return task
    return OutputTask(
        task.key, task.func, *task.args, _data_producer=task.data_producer, **task.kwargs
    )


def alias(key: Key, target: Key) -> Alias:
    """Return a task that returns the value of another one."""
    return Alias(key, target)


def alias_target(task: Any) -> Any:
    """Return the key that an alias stands for; None if this is no alias."""
    return task.target if isinstance(task, Alias) else None


def with_other_inputs(task: Any, names: Mapping[Any, Any], key: Any) -> Any:
    """Return a task under another key that reads the tasks that `names` has for its inputs."""
    return task.substitute({k: names[k] for k in task.dependencies if k in names}, key)


def in_one_task(
    key: Any,
    function: Callable[..., Any],
    keys: Sequence[Any],
    tasks: Mapping[Any, Any],
    *arguments: Any,
) -> Any:
    """Return a task that runs `tasks`, all of them needed, and calls `function(values of keys)`."""
    chosen = [_resolved(k, tasks) for k in keys]
    inside = [tasks[k] for k in chosen if k in tasks]
    if len({*chosen}) == len(chosen) and not any(
        k in tasks for t in inside for k in t.dependencies
    ):
        # dask runs tasks that are arguments of a task one after another, and plans nothing
        return Task(key, function, List(*(tasks.get(k, TaskRef(k)) for k in chosen)), *arguments)
    # as an argument, because dask optimizes slices in fused tasks, and loses those of a block that
    # several tasks of them slice
    values = Task(("values", key), list, List(*map(TaskRef, keys)))
    return Task(key, function, Task.fuse(*tasks.values(), values), *arguments)


def _resolved(key: Any, tasks: Mapping[Any, Any]) -> Any:
    """Return the key that a key stands for, after all aliases among some tasks."""
    while isinstance(tasks.get(key), Alias):
        key = tasks[key].target
    return key


def task_contents(part: Any) -> tuple[Any, ...] | None:
    """Return the values inside of a task, its function last, or of a blockwise layer; or None."""
    if isinstance(part, Task):
        return (*part.args, *part.kwargs.values(), part.func)
    if isinstance(part, DataNode):
        return (part.value,)
    if isinstance(part, (GraphNode, TaskRef)):
        return ()
    if isinstance(part, Blockwise):
        fixed = [value for value, index in part.indices if index is None]
        return (part.task, *fixed, *part.io_deps.values())
    return None


@dataclass(frozen=True, slots=True)
class DescribedLayer:
    """A blockwise layer, of which no task has been made."""

    task: Any
    """The task that stands for all; it refers to inputs by their place."""
    inputs: list[tuple[str, Any]]
    """Each input: `layer` and its name, `key` and the key of a task, or `value` and anything."""
    rest: tuple[Any, ...]
    """Everything else on which the tasks depend: indices, numbers of blocks, new axes."""


def described_layer(layer: Any) -> DescribedLayer | None:
    """Describe a blockwise layer; None for all other layers."""
    if not isinstance(layer, Blockwise):
        return None
    inputs: list[tuple[str, Any]] = []
    blocks: list[Any] = []
    for given, index in layer.indices:
        named = layer.numblocks.get(given) if isinstance(given, str) else None
        blocks.append(None if named is None else tuple(named))
        if isinstance(given, TaskRef):
            inputs.append(("key", given.key))
        elif index is None or given in layer.io_deps:
            inputs.append(("value", layer.io_deps.get(given, given) if index else given))
        else:
            inputs.append(("layer", given))
    rest = (
        tuple(layer.output_indices),
        [index for _, index in layer.indices],
        blocks,
        layer.concatenate,
        dict(layer.new_axes),
        None if layer.output_blocks is None else sorted(layer.output_blocks),
    )
    return DescribedLayer(layer.task, inputs, rest)


def described_task(part: Any) -> tuple[Any, ...] | None:
    """Return what a task does as values, ``("key", key)`` for a reference; None for the rest."""
    if isinstance(part, TaskRef):
        return ("key", part.key)
    if isinstance(part, Alias):
        return ("key", part.target)
    if isinstance(part, DataNode):
        return ("value", part.value)
    if isinstance(part, Task):
        return ("task", part.func, *part.args, tuple(part.kwargs.items()))
    return None


def listed_tasks(layers: Iterable[Any]) -> dict[Any, Any]:
    """Return the tasks of all layers of a graph that are not blockwise, in dask's present form."""
    given = list(layers)
    listed = [layer for layer in given if not isinstance(layer, Blockwise)]
    keys: set[Any] = set()
    for layer in given if listed else ():
        keys |= set(layer.get_output_keys() if isinstance(layer, Blockwise) else layer)
    tasks: dict[Any, Any] = {}
    for layer in listed:
        tasks.update(convert_legacy_graph(dict(layer), keys))
    return tasks
