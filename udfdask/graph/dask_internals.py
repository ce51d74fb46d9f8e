"""Import the parts of dask that are not documented and may change; no other module does.

All other modules of udfdask use the names in `tests/project/test_architecture.py` only. This module
offers them the following. `tests/graph/test_dask_internals.py` tests each point in seconds, without
the rest of udfdask:

- `Task(key, function, *arguments)`, where `TaskRef(key)` is the result of another task, also inside
  of a `List`; `TaskLayer(tasks)` is a layer of tasks that are listed one by one, and
  `ListedTasks(tasks)` one that `clone` and `bind` of dask rename with all their inputs.
- `LazyLayer(n, make, *arguments)`: a layer whose tasks are listed when they are needed.
- `OutputTask`: a task that is never fused with the task it reads from, however dask optimizes.
- `BlockLayer`: one task per block of an array, which dask fuses with the loading of the block.
- `optimized(graph, keys)`, `optimized_together(collections)`: the tasks of graphs as dask would run
  them; `needed_tasks(keys, tasks)`: those of some tasks that keys need; `never_fused(task)`: the
  same task, which further optimizations leave alone.
- `task_contents(part)`, `alias_target(task)`: what a task holds, also if it has been fused.
- `described_layer(layer)`: what a blockwise layer computes from what, without listing its tasks;
  `described_task(part)`: what a task does; `listed_tasks(layers)`: the tasks of all others.
- `sliced_key(task)`: the block that a task only slices; `reads_slices(layer)`: whether the tasks of
  a layer slice a source, such as a file.
- `BlockLayer.with_argument(name, values)`: the same layer, whose tasks have one more argument.
- `in_one_layer(tasks, collections)`: a graph of tasks that belong to several collections.
- `loaded_again(array, seed)`: the same array from tasks with other names.
- `blocks_in_memory(array)`: the blocks of an array that are in its graph as data.
- `in_one_task(key, function, keys, tasks)`: a task that runs others itself; `join_blocks(blocks)`
  joins nested lists of blocks of any type; `with_other_inputs(task, names)` reads other keys.
- `GraphArray`: an array over a `HighLevelGraph`, which is what `dask.array.Array` is unless dask's
  expression arrays are switched on. `graph_array(array)` makes one of an expression array, with
  equal tasks for equal expressions; `as_user_has_it(array)` is the way back, `make_array` makes
  arrays of the kind that the user has.
- `compute_here(array)`: the values of an array inside of a task, without any scheduler.
- `process_pool(n, initializer)`: a pool like the one that dask's process scheduler makes.
- `submitted_keys(arguments)`: the keys of the tasks that a local scheduler submits to its pool.
- `normalize_index(index, shape)`: an index as dask passes it to sources, one part for each axis.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from dask import base, config
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
from dask._task_spec import cull as cull_tasks
from dask.array.chunk import getitem
from dask.array.core import Array as GraphArray
from dask.array.core import concatenate3, getter, getter_nofancy
from dask.array.slicing import normalize_index
from dask.base import clone_key
from dask.blockwise import BlockIndex, Blockwise, BlockwiseDepDict, blockwise_token
from dask.core import flatten
from dask.graph_manipulation import chunks, clone
from dask.highlevelgraph import HighLevelGraph, Layer
from dask.highlevelgraph import MaterializedLayer as TaskLayer
from dask.utils import ensure_dict

__all__ = [
    "BlockLayer",
    "GraphArray",
    "LazyLayer",
    "List",
    "ListedTasks",
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
    "described_layer",
    "described_task",
    "graph_array",
    "in_one_layer",
    "in_one_task",
    "join_blocks",
    "listed_tasks",
    "loaded_again",
    "make_array",
    "needed_tasks",
    "never_fused",
    "normalize_index",
    "optimized",
    "optimized_together",
    "process_pool",
    "submitted_keys",
    "task_contents",
    "with_other_inputs",
]


_LAYER = "all-tasks"
"""Name of the layer of `in_one_layer`."""


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


class ListedTasks(TaskLayer):
    """A layer of tasks that are listed one by one, which dask can clone."""

    def clone(self, keys: set[Any], seed: Any, bind_to: Any = None) -> tuple[Layer, bool]:
        """Return the tasks with other names, and whether any waits for the task `bind_to`."""
        return _cloned(self, keys, seed, bind_to)


class LazyLayer(Layer):
    """A layer of `n` tasks, which ``make(*arguments)`` lists by key when they are needed.

    The client of a cluster never needs them: it sends function and arguments, and the scheduler
    lists the tasks.
    """

    has_legacy_tasks = False

    def __init__(self, n: int, make: Callable[..., dict[Any, Any]], *arguments: Any) -> None:
        super().__init__()
        self._n = n
        self._make = make
        self._arguments = arguments

    @functools.cached_property
    def _tasks(self) -> dict[Any, Any]:
        """The tasks by key."""
        return self._make(*self._arguments)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_tasks"}

    def __getitem__(self, key: Any) -> Any:
        return self._tasks[key]

    def __contains__(self, key: Any) -> bool:
        return key in self._tasks

    def __iter__(self) -> Iterator[Any]:
        return iter(self._tasks)

    def __len__(self) -> int:
        return self._n

    def is_materialized(self) -> bool:
        """Return whether the tasks have been listed."""
        return "_tasks" in self.__dict__

    def get_output_keys(self) -> AbstractSet[Any]:
        """Return the keys of all tasks."""
        return self._tasks.keys()

    def cull(self, keys: set[Any], all_hlg_keys: Any) -> tuple[Layer, Mapping[Any, set[Any]]]:
        """Return a layer of the tasks that some keys need, and the inputs of each."""
        tasks = cull_tasks(self._tasks, keys)
        layer = TaskLayer(tasks, annotations=self.annotations)
        return layer, {key: set(task.dependencies) for key, task in tasks.items()}

    def clone(self, keys: set[Any], seed: Any, bind_to: Any = None) -> tuple[Layer, bool]:
        """Return the tasks with other names, and whether any waits for the task `bind_to`."""
        return _cloned(self._tasks, keys, seed, bind_to)


def _cloned(
    tasks: Mapping[Any, Any], keys: set[Any], seed: Any, bind_to: Any
) -> tuple[ListedTasks, bool]:
    """Return tasks with other names, and whether any waits for the task `bind_to`.

    `keys` are those to rename, of these tasks and of others. dask's own method renames the tasks,
    but not their inputs.
    """
    clones = {}
    bound = False
    for key, task in tasks.items():
        new = clone_key(key, seed) if key in keys else key
        if not isinstance(task, GraphNode):  # a value, for example a result on a cluster
            clones[new] = task
            continue
        inputs = {need: clone_key(need, seed) for need in task.dependencies if need in keys}
        if new != key and not inputs and bind_to is not None:
            bound = True
            kind = OutputTask if isinstance(task, OutputTask) else Task
            clones[new] = kind(new, chunks.bind, task, TaskRef(bind_to))
        else:
            clones[new] = task.substitute(inputs, new)
    return ListedTasks(clones), bound


class BlockLayer(Blockwise):
    """One task per block of an array as a blockwise layer, which dask fuses with the loading.

    A layer costs the local schedulers less than fused single tasks, because no alias is left
    (10,000 tiny chunks on two threads: 3.5 instead of 5.1 s). All axes are output axes, because
    dask does not fuse contractions. An argument that is a task is an input without axes, so that
    dask still fuses; it would not fuse single tasks that have two inputs.

    The function is called with `arguments`, in which `BlockLayer.BLOCK` stands for the block,
    `BlockLayer.INDEX` for its place in the grid of blocks, a `PerBlock` for its value at that
    place, and a `TaskRef` for the result of a task.
    """

    BLOCK = object()
    INDEX = object()

    def __init__(
        self, name: str, array: Any, function: Callable[..., Any], *arguments: Any
    ) -> None:
        axes = tuple(range(array.ndim))
        inputs: list[tuple[Any, Any]] = [(array.name, axes)]

        def as_input(argument: Any) -> Any:
            if argument is BlockLayer.BLOCK:
                return TaskRef(blockwise_token(0))
            if argument is BlockLayer.INDEX:
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
            Task(name, function, *map(as_input, arguments)),
            inputs,
            numblocks={array.name: array.numblocks},
            # dask fuses layers only if these are equal
            concatenate=getattr(array.dask.layers[array.name], "concatenate", None),
        )

    def with_argument(self, name: str, values: PerBlock) -> Blockwise:
        """Return the same layer with a keyword argument that has a value for each block."""
        numblocks = tuple(self.dims[axis] for axis in self.output_indices)
        # an input that has a name is not pickled for one, which takes 0.03 ms for each block
        place = f"{self.output}-{name}"
        more: dict[str, Any] = {name: TaskRef(blockwise_token(len(self.indices)))}
        task = Task(self.task.key, self.task.func, *self.task.args, **self.task.kwargs, **more)
        return Blockwise(
            self.output,
            self.output_indices,
            task,
            [*self.indices, (place, self.output_indices)],
            {**self.numblocks, place: numblocks},
            concatenate=self.concatenate,
            io_deps={**self.io_deps, place: BlockwiseDepDict(dict(values.values), numblocks)},
        )


@dataclass(frozen=True, slots=True)
class PerBlock:
    """An argument of a `BlockLayer` with a value for each block."""

    values: Mapping[tuple[int, ...], Any]
    """Values by the place of the block in the grid of blocks."""


def optimized(graph: HighLevelGraph, keys: list[Any]) -> dict[Any, Any]:
    """Return the tasks that some keys need, optimized as those of dask arrays are."""
    return dict(convert_legacy_graph(ensure_dict(GraphArray.__dask_optimize__(graph, keys))))


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizedTasks:
    """The tasks of several collections, optimized together."""

    tasks: dict[Any, Any]
    """Tasks by key."""
    futures: dict[Any, Any]
    """Results that a cluster has already, by key."""
    keys: set[Any]
    """Keys of the collections."""


def optimized_together(collections: Any) -> OptimizedTasks:
    """Return the tasks that are needed for collections, as `dask.compute` optimizes them."""
    expression = base.collections_to_expr(collections).optimize()
    keys = set(flatten(expression.__dask_keys__()))
    # it may still contain legacy tasks, bare values, and tasks that are not needed any more
    given = dict(expression.__dask_graph__())
    every = convert_legacy_graph(given)
    futures = {key: given[key] for key in given.keys() - every.keys()}
    return OptimizedTasks(tasks=needed_tasks(keys, every), futures=futures, keys=keys)


def needed_tasks(keys: Iterable[Any], tasks: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return those of some tasks that keys need, directly or not."""
    needed: dict[Any, Any] = {}
    todo = list(keys)
    while todo:
        key = todo.pop()
        if key in tasks and key not in needed:
            needed[key] = tasks[key]
            todo.extend(tasks[key].dependencies)
    return needed


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


def in_one_layer(tasks: dict[Any, Any], collections: Any) -> HighLevelGraph:
    """Return a graph with all tasks in one layer.

    Layers made from the names of keys could depend on each other in both directions, for example
    those of a Cholesky decomposition. Collections search for layers by name, so there are also
    empty layers with their names; for delayed values and items of bags, the name is their key.
    """
    layers = {_LAYER: TaskLayer(tasks)}
    for collection in collections:
        first = next(flatten(collection.__dask_keys__()))
        for name in (*collection.__dask_layers__(), first):
            layers[name] = TaskLayer({})
    return HighLevelGraph(layers, {name: {_LAYER} - {name} for name in layers})


def alias_target(task: Any) -> Any:
    """Return the key that an alias stands for; None if this is no alias."""
    return task.target if isinstance(task, Alias) else None


def loaded_again(array: Any, seed: str) -> GraphArray:
    """Return the same data from tasks with other names, which follow from the seed.

    dask's `clone` does not rename the inputs of tasks that are listed one by one, such as those of
    slices and of a rechunk. They would be read in the first pass, or be missing if that does not
    need them.
    """
    twin = clone(array, seed=seed)
    layers = {
        name: _with_cloned_inputs(layer, seed) if type(layer) is TaskLayer else layer
        for name, layer in twin.dask.layers.items()
    }
    graph = HighLevelGraph(layers, twin.dask.dependencies)
    return GraphArray(graph, twin.name, twin.chunks, meta=twin._meta)


def _with_cloned_inputs(layer: Mapping[Any, Any], seed: str) -> TaskLayer:
    """Return a cloned layer whose tasks have their new key and read cloned tasks."""
    tasks = {
        key: task.substitute({need: clone_key(need, seed) for need in task.dependencies}, key)
        if isinstance(task, GraphNode)
        else task
        for key, task in layer.items()
    }
    return TaskLayer(tasks)


def blocks_in_memory(array: Any) -> Mapping[Any, Any] | None:
    """Return the blocks of an array if they are in its graph as data; else None."""
    layer: Any = array.dask.layers[array.name]
    if not isinstance(layer, TaskLayer):
        return None
    # the layer of random numbers, for example, has data and tasks that read them
    all_data = all(isinstance(block, (np.ndarray, DataNode)) for block in layer.values())
    return layer.mapping if all_data else None


def in_one_task(
    key: Any,
    function: Callable[..., Any],
    keys: Sequence[Any],
    tasks: Mapping[Any, Any],
    *arguments: Any,
) -> Any:
    """Return a task that calls `function(values of keys, *arguments)` and runs `tasks` itself.

    A key that is not among `tasks` is that of another task of the graph.
    """
    chosen = [_resolved(k, tasks) for k in keys]
    inside = [tasks[k] for k in chosen if k in tasks]
    if len({*chosen}) == len(chosen) and not any(
        k in tasks for t in inside for k in t.dependencies
    ):
        # dask runs tasks that are arguments of a task one after another, and plans nothing
        return Task(key, function, List(*(tasks.get(k, TaskRef(k)) for k in chosen)), *arguments)
    last = Task(("last", key), function, List(*map(TaskRef, keys)), *arguments)
    return Task.fuse(*needed_tasks(keys, tasks).values(), last, key=key)


def _resolved(key: Any, tasks: Mapping[Any, Any]) -> Any:
    """Return the key that a key stands for, after all aliases among some tasks."""
    while isinstance(tasks.get(key), Alias):
        key = tasks[key].target
    return key


def with_other_inputs(task: Any, names: Mapping[Any, Any], key: Any) -> Any:
    """Return a task under another key that reads the tasks that `names` has for its inputs."""
    return task.substitute({k: names[k] for k in task.dependencies if k in names}, key)


def join_blocks(blocks: Any) -> Any:
    """Return one array from nested lists of blocks, of any array type that dask knows."""
    return concatenate3(blocks)


def graph_array(value: Any) -> Any:
    """Lower an expression array to an array over a graph; return anything else as it is.

    It is not simplified or fused, so that two arrays from the same expression share its tasks.
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
    """Return an array over a graph as an expression array, if dask uses those."""
    if da.Array is GraphArray or not isinstance(value, GraphArray):
        return value
    kind: Any = da.Array
    return kind(_graph_expression()(value))


def make_array(graph: HighLevelGraph, name: str, chunks: Any, meta: Any) -> Any:
    """Return an array whose blocks are tasks of a graph, of the kind that dask uses."""
    return as_user_has_it(GraphArray(graph, name, chunks, meta=meta))


@functools.cache
def _graph_expression() -> Any:
    """Return the class of expressions that stand for an array over a graph."""
    from dask.array._array_expr._expr import ArrayExpr  # loads all of expression arrays

    class GraphExpression(ArrayExpr):
        """An array over a graph, whose tasks keep their names."""

        _parameters = ["array"]  # noqa: RUF012

        def __init__(self, *_: Any, **__: Any) -> None:
            # A class without __init__ is cached by name: dask would return the array that has not
            # been persisted, whose name is the same.
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
    """Return `GraphExpression`, which pickle imports by name; most processes never need it."""
    if name == "GraphExpression":
        return _graph_expression()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def compute_here(array: Any) -> Any:
    """Return the values of an array, computed by this thread without a scheduler.

    A scheduler inside of a task would report its tasks as tasks of the outer computation.
    """
    keys = array.__dask_keys__()
    flat = list(flatten(keys))
    graph = dict(array.__dask_optimize__(array.dask, flat))
    blocks = execute_graph(graph, keys=set(flat))
    return blocks[flat[0]] if len(flat) == 1 else concatenate3(_nested(keys, blocks))


def process_pool(n: int, initializer: Callable[[], object] | None) -> ProcessPoolExecutor:
    """Return a new pool of processes like the one that dask's process scheduler makes."""
    from dask import multiprocessing  # loads much that other schedulers do not need

    if os.environ.get("PYTHONHASHSEED") in (None, "0"):
        os.environ["PYTHONHASHSEED"] = "6640"  # dask's number: all processes hash alike
    initializer = initializer or config.get("multiprocessing.initializer", None)
    return ProcessPoolExecutor(
        n,
        mp_context=multiprocessing.get_context(),
        initializer=functools.partial(
            multiprocessing.initialize_worker_process, user_initializer=initializer
        ),
    )


def submitted_keys(arguments: tuple[Any, ...]) -> list[Any]:
    """Return the keys of the tasks that a local scheduler passes to the `submit` of its pool."""
    try:
        return [task[0] for task in arguments[0]]
    except (IndexError, TypeError):
        return []


def _nested(keys: Any, blocks: Mapping[Any, Any]) -> Any:
    """Return blocks in the same nested lists as their keys."""
    return [_nested(key, blocks) if isinstance(key, list) else blocks[key] for key in keys]
