"""What tasks and layers hold and do, whether dask, this library or others made them.

- `task_contents(part)`: the values inside of a task, also if it has been fused.
- `described_layer(layer)`: what a blockwise layer computes from what, without listing its tasks;
  `described_task(part)`: what a task does; `listed_tasks(layers)`: the tasks of all other layers.
- `sliced_key(task)`: the block that a task only slices; `reads_slices(layer)`: whether the tasks of
  a layer slice a source, such as a file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dask._task_spec import Alias, DataNode, GraphNode, Task, TaskRef, convert_legacy_graph
from dask.array.chunk import getitem
from dask.array.core import getter, getter_nofancy
from dask.blockwise import Blockwise


def task_contents(part: Any) -> tuple[Any, ...] | None:
    """Return the values inside of a task, a reference or a blockwise layer; None for all else.

    The function of a task comes last. A blockwise layer has one task that stands for all.
    """
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


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedLayer:
    """A blockwise layer, of which no task has been made."""

    task: Any
    """The task that stands for all; it refers to inputs by their place."""
    inputs: tuple[tuple[str, Any], ...]
    """Each input: `layer` and its name, `key` and the key of a task, or `value` and anything."""
    rest: tuple[Any, ...]
    """Everything else on which the tasks depend: indices, numbers of blocks, new axes."""


def described_layer(layer: Any) -> DescribedLayer | None:
    """Describe a blockwise layer; None for all other layers."""
    if not isinstance(layer, Blockwise):
        return None
    inputs: list[tuple[str, Any]] = []
    for given, index in layer.indices:
        if isinstance(given, TaskRef):
            inputs.append(("key", given.key))
        elif index is None or given in layer.io_deps:
            inputs.append(("value", layer.io_deps.get(given, given) if index else given))
        else:
            inputs.append(("layer", given))
    names = [name for name, _ in layer.indices]
    blocks = [layer.numblocks.get(name) if isinstance(name, str) else None for name in names]
    culled = None if layer.output_blocks is None else sorted(layer.output_blocks)
    rest = (
        tuple(layer.output_indices),
        [index for _, index in layer.indices],
        [None if each is None else tuple(each) for each in blocks],
        layer.concatenate,
        dict(layer.new_axes),
        culled,
    )
    return DescribedLayer(task=layer.task, inputs=tuple(inputs), rest=rest)


def described_task(part: Any) -> tuple[Any, ...] | None:
    """Return what a task does as a tuple of values; None for anything else.

    A reference is ``("key", key)``.
    """
    if isinstance(part, TaskRef):
        return ("key", part.key)
    if isinstance(part, Alias):
        return ("key", part.target)
    if isinstance(part, DataNode):
        return ("value", part.value)
    if isinstance(part, Task):
        return ("task", part.func, *part.args, tuple(part.kwargs.items()))
    return None


def sliced_key(task: Any) -> Any:
    """Return the key of the block that a task does nothing but slice; None for all other tasks."""
    if isinstance(task, Task) and task.func is getitem and isinstance(task.args[0], TaskRef):
        return task.args[0].key
    return None


def reads_slices(layer: Any) -> bool:
    """Return whether each task of a layer slices an object, such as a file: dask joins slices."""
    reads = (getter, getter_nofancy)
    return isinstance(layer, Blockwise) and getattr(layer.task, "func", None) in reads


def listed_tasks(layers: Iterable[Any]) -> dict[Any, Any]:
    """Return the tasks of all layers that are not blockwise by key, in dask's present form.

    `layers` are all layers of a graph: in the old form, only its keys tell a reference from a
    tuple.
    """
    given = list(layers)
    listed = [layer for layer in given if not isinstance(layer, Blockwise)]
    keys: set[Any] = set()
    for layer in given if listed else ():
        keys |= set(layer.get_output_keys() if isinstance(layer, Blockwise) else layer)
    tasks: dict[Any, Any] = {}
    for layer in listed:
        tasks.update(convert_legacy_graph(dict(layer), keys))
    return tasks
