"""The one module that imports parts of dask that dask does not document, and may change.

All other modules of udfdask keep to the list in `tests/project/test_architecture.py`. This is what
they are offered, and what dask has to do for it; `tests/graph/test_dask_internals.py` tests each
point in seconds, with nothing else of udfdask around it:

- `Task(key, function, *arguments)`, where `TaskRef(key)` is the result of another task, also inside
  of a `List`; `TaskLayer(tasks)` is a layer of tasks that are written out.
- `OutputTask`: a task that is never fused with the task it reads from, however dask optimizes.
- `BlockLayer`: one task per block of an array, which dask fuses with the loading of the block.
- `optimized(graph, keys)`, `optimized_together(collections)`: the tasks of graphs as dask would run
  them; `never_fused(task)`: the same task, which further optimizations leave alone.
- `task_contents(part)`, `alias_target(task)`: what a task holds, also if it has been fused.
- `loaded_again(array, seed)`: the same array from tasks with other names.
- `blocks_in_memory(array)`: the blocks that lie in the graph themselves.
- `GraphArray`: an array over a `HighLevelGraph`, which is what `dask.array.Array` is unless dask's
  expression arrays are switched on. `graph_array(array)` makes one of an expression array, with
  equal tasks for equal expressions; `as_user_has_it(array)` is the way back, `make_array` makes
  arrays of the kind that the user has.
- `compute_here(array)`: the values of an array inside of a task, without any scheduler.
- `normalize_index(index, shape)`: an index as dask passes it to sources, one part for each axis.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from dask import base
from dask._task_spec import (
    Alias,
    DataNode,
    GraphNode,
    List,
    Task,
    TaskRef,
    convert_legacy_graph,
    execute_graph,
)
from dask.array.core import Array as GraphArray
from dask.array.core import concatenate3
from dask.array.slicing import normalize_index
from dask.base import clone_key
from dask.blockwise import BlockIndex, Blockwise, BlockwiseDepDict, blockwise_token
from dask.core import flatten
from dask.graph_manipulation import clone
from dask.highlevelgraph import HighLevelGraph
from dask.highlevelgraph import MaterializedLayer as TaskLayer
from dask.utils import ensure_dict

__all__ = [
    "BlockLayer",
    "GraphArray",
    "List",
    "OptimizedTasks",
    "OutputTask",
    "PerBlock",
    "Task",
    "TaskLayer",
    "TaskRef",
    "alias_target",
    "as_user_has_it",
    "blocks_in_memory",
    "compute_here",
    "graph_array",
    "loaded_again",
    "make_array",
    "never_fused",
    "normalize_index",
    "optimized",
    "optimized_together",
    "task_contents",
]


class OutputTask(Task):
    """A task that is never fused with the task it reads from.

    dask optimizes each collection alone in `dask.optimize`. If two outputs of one chunk task were
    each fused with it, it would run twice.
    """

    __slots__ = ()

    @property
    def block_fusion(self) -> bool:
        """Tell dask to leave this task alone."""
        return True


def never_fused(task: Any) -> Any:
    """Return a task as one that dask does not fuse with others; aliases and data as they are."""
    if type(task) is not Task:
        return task
    return OutputTask(
        task.key, task.func, *task.args, _data_producer=task.data_producer, **task.kwargs
    )


class BlockLayer(Blockwise):
    """One task per block of an array as a blockwise layer, which dask fuses with the loading.

    Fused there, a task costs the local schedulers half of what it costs when tasks written out are
    fused: no alias is left behind (10,000 tiny chunks on two threads: 5.1 to 3.5 s). All axes
    stay output axes, since dask fuses no contraction. An argument that is a task is an input
    without axes, which does not keep dask from this; tasks written out with two inputs it would
    not fuse.

    The function is called with `arguments`, where `BlockLayer.BLOCK` stands for the block,
    `BlockLayer.INDEX` for its place in the grid of blocks, a `PerBlock` for the value at that
    place, and a `TaskRef` for the result of a task.
    """

    BLOCK = object()
    INDEX = object()

    def __init__(
        self, name: str, array: Any, function: Callable[..., Any], *arguments: Any
    ) -> None:
        axes = tuple(range(array.ndim))
        inputs: list[tuple[Any, Any]] = [(array.name, axes)]

        def given(argument: Any) -> Any:
            if argument is BlockLayer.BLOCK:
                return TaskRef(blockwise_token(0))
            if argument is BlockLayer.INDEX:
                # tasks work out their chunk from the index, so that no task has to hold it
                inputs.append((BlockIndex(array.numblocks), axes))
            elif isinstance(argument, PerBlock):
                inputs.append((BlockwiseDepDict(dict(argument.values), array.numblocks), axes))
            elif isinstance(argument, TaskRef):
                inputs.append((argument, None))
            else:
                return argument
            return TaskRef(blockwise_token(len(inputs) - 1))

        super().__init__(
            name,
            axes,  # type: ignore[arg-type]
            Task(name, function, *map(given, arguments)),
            inputs,
            numblocks={array.name: array.numblocks},
            # dask fuses layers only if these are equal
            concatenate=getattr(array.dask.layers[array.name], "concatenate", None),
        )


@dataclass(frozen=True, slots=True)
class PerBlock:
    """An argument of a `BlockLayer` that has another value for each block."""

    values: Mapping[tuple[int, ...], Any]
    """Values by the place of the block."""


def optimized(graph: HighLevelGraph, keys: list[Any]) -> dict[Any, Any]:
    """Return the tasks that are needed for some keys, as those of dask arrays are optimized."""
    return dict(convert_legacy_graph(ensure_dict(GraphArray.__dask_optimize__(graph, keys))))


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizedTasks:
    """What several collections need, optimized together."""

    tasks: dict[Any, Any]
    """Tasks by key."""
    futures: dict[Any, Any]
    """What a cluster has computed already, by key."""
    keys: set[Any]
    """Keys of the collections."""


def optimized_together(collections: Any) -> OptimizedTasks:
    """Return the tasks that are needed for collections, as `dask.compute` optimizes them."""
    expression = base.collections_to_expr(collections).optimize()
    keys = set(flatten(expression.__dask_keys__()))
    # legacy tasks and bare values may be left in it, and tasks that nobody needs any more
    given = dict(expression.__dask_graph__())
    every = convert_legacy_graph(given)
    tasks: dict[Any, GraphNode] = {}
    todo = list(keys)
    while todo:
        key = todo.pop()
        if key in every and key not in tasks:
            tasks[key] = every[key]
            todo.extend(every[key].dependencies)
    futures = {key: given[key] for key in given.keys() - every.keys()}
    return OptimizedTasks(tasks=tasks, futures=futures, keys=keys)


def task_contents(part: Any) -> tuple[Any, ...] | None:
    """Return what a task, a reference or a blockwise layer holds; None for all else.

    The function of a task comes last. In a blockwise layer, one task stands for all.
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


def alias_target(task: Any) -> Any:
    """Return the key of the task that an alias stands for; None if this is no alias."""
    return task.target if isinstance(task, Alias) else None


def loaded_again(array: Any, seed: str) -> GraphArray:
    """Return the same data from tasks of other names, made of the old ones and the seed.

    In tasks that are listed one by one, such as those of slices and of a rechunk, dask's `clone`
    leaves the keys of what they need as they were: these come from the first pass, or, if that
    does not need them, from nowhere.
    """
    twin = clone(array, seed=seed)
    layers = {
        name: _with_cloned_needs(layer, seed) if type(layer) is TaskLayer else layer
        for name, layer in twin.dask.layers.items()
    }
    graph = HighLevelGraph(layers, twin.dask.dependencies)
    return GraphArray(graph, twin.name, twin.chunks, meta=twin._meta)


def _with_cloned_needs(layer: Mapping[Any, Any], seed: str) -> TaskLayer:
    """Return a cloned layer whose tasks have their own key and need cloned ones."""
    tasks = {
        key: task.substitute({need: clone_key(need, seed) for need in task.dependencies}, key)
        if isinstance(task, GraphNode)
        else task
        for key, task in layer.items()
    }
    return TaskLayer(tasks)


def blocks_in_memory(array: Any) -> Mapping[Any, Any] | None:
    """Return the blocks of an array if they lie in its graph, so that nothing has to load them."""
    layer: Any = array.dask.layers[array.name]
    if not isinstance(layer, TaskLayer):
        return None
    # a layer may hold data beside tasks that read them, as that of random numbers does
    known = all(isinstance(block, (np.ndarray, DataNode)) for block in layer.values())
    return layer.mapping if known else None


def graph_array(value: Any) -> Any:
    """Return an expression array as one over a graph; anything else as it is.

    Neither simplified nor fused, so that two arrays made of the same expression share its tasks.
    """
    if da.Array is GraphArray or not isinstance(value, da.Array):
        return value
    lowered: Any = value.expr.lower_completely()  # type: ignore[attr-defined]
    layers: dict[str, Any] = {}
    dependencies: dict[str, set[str]] = {}
    for node in lowered.walk():
        graph = getattr(node, "graph_of_udfdask", None)
        if graph is None:
            layers[node._name] = TaskLayer(node._layer())
            dependencies[node._name] = {needed._name for needed in node.dependencies()}
        else:
            layers.update(graph.layers)
            dependencies.update(graph.dependencies)
    graph = HighLevelGraph(layers, dependencies)
    return GraphArray(graph, lowered._name, value.chunks, meta=value._meta)


def as_user_has_it(value: Any) -> Any:
    """Return an array over a graph as an expression array if dask makes such; all else as it is."""
    if da.Array is GraphArray or not isinstance(value, GraphArray):
        return value
    kind: Any = da.Array
    return kind(_graph_expression()(value))


def make_array(graph: HighLevelGraph, name: str, chunks: Any, meta: Any) -> Any:
    """Return an array whose blocks are tasks of a graph, of the kind that the user has."""
    return as_user_has_it(GraphArray(graph, name, chunks, meta=meta))


@functools.cache
def _graph_expression() -> Any:
    """Return the class of expressions that stand for an array over a graph."""
    from dask.array._array_expr._expr import ArrayExpr  # loads all of expression arrays

    class GraphExpression(ArrayExpr):
        """An array over a graph, whose tasks keep their names."""

        _parameters = ["array"]  # noqa: RUF012

        def __init__(self, *_: Any, **__: Any) -> None:
            # without this, dask takes what has been persisted for what has not: names are equal
            pass

        _name = property(lambda self: self.operand("array").name)
        chunks = property(lambda self: self.operand("array").chunks)
        _meta = property(lambda self: self.operand("array")._meta)
        graph_of_udfdask = property(lambda self: self.operand("array").dask)

        def _layer(self) -> dict[Any, Any]:
            return dict(self.graph_of_udfdask)

    GraphExpression.__qualname__ = "GraphExpression"
    return GraphExpression


def __getattr__(name: str) -> Any:
    """Return the class that pickle looks for; most processes never need it."""
    if name == "GraphExpression":
        return _graph_expression()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def compute_here(array: Any) -> Any:
    """Return the values of an array, computed by this thread.

    A scheduler inside of a task would report its tasks as those of the computation around it.
    """
    keys = array.__dask_keys__()
    flat = list(flatten(keys))
    graph = dict(array.__dask_optimize__(array.dask, flat))
    blocks = execute_graph(graph, keys=set(flat))
    return blocks[flat[0]] if len(flat) == 1 else concatenate3(_nested(keys, blocks))


def _nested(keys: Any, blocks: Mapping[Any, Any]) -> Any:
    """Take keys in lists in lists; return their blocks in the same lists."""
    return [_nested(key, blocks) if isinstance(key, list) else blocks[key] for key in keys]
