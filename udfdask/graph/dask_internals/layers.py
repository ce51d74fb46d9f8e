"""Layers of tasks: listed one by one, listed late, or one task for each block; their tasks."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import dask.array as da
import numpy as np
from dask._expr import HLGExpr, _ExprSequence
from dask._task_spec import DataNode, GraphNode, convert_legacy_graph
from dask.array.core import concatenate3
from dask.base import clone_key
from dask.blockwise import (
    BlockIndex,
    Blockwise,
    BlockwiseDepDict,
    blockwise_token,
    optimize_blockwise,
)
from dask.core import flatten
from dask.graph_manipulation import chunks
from dask.highlevelgraph import HighLevelGraph, Layer
from dask.highlevelgraph import MaterializedLayer as TaskLayer
from dask.utils import ensure_dict

from udfdask.graph.dask_internals.tasks import OutputTask, Task, TaskRef, cull

__all__ = ["TaskLayer"]


class ListedTasks(TaskLayer):
    """A layer of tasks that are listed one by one, which dask can clone."""

    def clone(self, keys: set[Any], seed: Any, bind_to: Any = None) -> tuple[Layer, bool]:
        """Return the tasks with other names, and whether any waits for the task `bind_to`.

        `keys` are those to rename, of these tasks and of others. dask's own method renames the
        tasks, but not their inputs.
        """
        clones, bound = {}, False
        for key, task in self.items():
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


class LazyLayer(ListedTasks):
    """A layer of `n` tasks, which ``make(*arguments)`` lists by key: never on a client."""

    has_legacy_tasks = False

    def __init__(self, n: int, make: Callable[..., dict[Any, Any]], *arguments: Any) -> None:
        Layer.__init__(self)  # that of the base class would need the tasks
        self._n = n
        self._make = make
        self._arguments = arguments

    @functools.cached_property
    def mapping(self) -> dict[Any, Any]:  # type: ignore[override]
        """The tasks by key."""
        return self._make(*self._arguments)

    def renamed(self, name: str) -> LazyLayer:
        """Return the same tasks, of which `name` is the first argument, with another name."""
        return LazyLayer(self._n, self._make, name, *self._arguments[1:])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "mapping"}

    def __len__(self) -> int:
        return self._n

    def is_materialized(self) -> bool:
        """Return whether the tasks have been listed."""
        return "mapping" in self.__dict__


class BlockLayer(Blockwise):
    """One task per block of an array as a blockwise layer, which dask fuses with the loading.

    A layer costs the local schedulers less than fused single tasks, because no alias is left
    (10,000 tiny chunks on two threads: 3.5 instead of 5.1 s). All axes are output axes, because
    dask does not fuse contractions. An argument that is a task is an input without axes, so that
    dask still fuses; it would not fuse single tasks that have two inputs.

    The function is called with `arguments`, in which `BlockLayer.BLOCK` stands for the block,
    `BlockLayer.INDEX` for its place in the grid of blocks, a dictionary by place for its value at
    that place, and a `TaskRef` for the result of a task.
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
            elif isinstance(argument, dict):
                inputs.append((BlockwiseDepDict(argument, array.numblocks), axes))
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


def in_one_layer(collections: Iterable[Any], tasks: dict[Any, Any]) -> list[Any]:
    """Return collections over other tasks of the same keys, all of which are in one layer.

    Layers made from the names of keys could depend on each other in both directions, for example
    those of a Cholesky decomposition. Collections search for layers by name, so there are also
    empty layers with their names; for delayed values and items of bags, the name is their key.
    """
    layers = {"all-tasks": TaskLayer(tasks)}
    rebuilds = []
    for collection in collections:
        first = next(flatten(collection.__dask_keys__()))
        for name in (*collection.__dask_layers__(), first):
            layers[name] = TaskLayer({})
        rebuilds.append(collection.__dask_postpersist__())
    graph = HighLevelGraph(layers, {name: {"all-tasks"} - {name} for name in layers})
    return [rebuild(graph, *state) for rebuild, state in rebuilds]


def fused(graph: HighLevelGraph, keys: list[Any]) -> Mapping[str, Any]:
    """Return the layers of a graph after dask has fused the blockwise ones; lists no task."""
    layers: Mapping[str, Any] = optimize_blockwise(graph, keys).layers
    return layers


def is_never_fused(layer: Any) -> bool:
    """Return whether dask fuses no task of a layer with its inputs."""
    if isinstance(layer, LazyLayer):
        return True
    return isinstance(layer, ListedTasks) and all(
        isinstance(task, OutputTask) for task in layer.values()
    )


def optimized(graph: HighLevelGraph, keys: list[Any]) -> dict[Any, Any]:
    """Return the tasks that some keys need, optimized as those of dask arrays are."""
    return dict(convert_legacy_graph(ensure_dict(da.Array.__dask_optimize__(graph, keys))))


def optimized_together(
    collections: Any,
) -> tuple[dict[Any, Any], dict[Any, Any], set[Any]]:
    """Return the tasks that are needed for collections, as `dask.compute` optimizes them.

    Also return the results that a cluster has already, by key, and the keys of the collections.
    """
    # not `collections_to_expr`: a `Result` over expressions would be one, which has other keys
    expression = _ExprSequence(*map(HLGExpr.from_collection, collections)).optimize()
    keys = set(flatten(expression.__dask_keys__()))
    # it may still contain legacy tasks, bare values, and tasks that are not needed any more
    given = dict(expression.__dask_graph__())
    every = convert_legacy_graph(given)
    futures = {key: given[key] for key in given.keys() - every.keys()}
    return cull(every, keys), futures, keys


def listed(expression: Any) -> dict[Any, Any]:
    """Return the tasks of an optimized expression by key."""
    return dict(convert_legacy_graph(dict(expression.__dask_graph__())))


def loaded_again(array: Any, seed: str) -> da.Array:
    """Return the same data from tasks with other names, which follow from the seed.

    Blockwise layers stay blockwise, so that dask fuses the loading with the chunks. dask's `clone`
    does not rename the inputs of tasks that are listed one by one, such as those of slices and of a
    rechunk: they would be read in the first pass, or be missing if that does not need them.
    """
    given = array.dask
    # a copy, because dask keeps the keys in the graph
    keys = given.copy().get_all_external_keys()
    layers: dict[str, Any] = {}
    for name, layer in given.layers.items():
        twin = layer
        if not (isinstance(layer, Blockwise) and _can_clone(layer, given.dependencies[name], keys)):
            tasks = dict(layer)
            # the conversion leaves out results on a cluster, which stay what they are
            twin = ListedTasks(tasks | convert_legacy_graph(tasks, keys))
        layers[clone_key(name, seed)], _ = twin.clone(keys, seed)
    dependencies = {
        clone_key(name, seed): {clone_key(needed, seed) for needed in names}
        for name, names in given.dependencies.items()
    }
    graph = HighLevelGraph(layers, dependencies)
    return da.Array(graph, clone_key(array.name, seed), array.chunks, meta=array._meta)


def _can_clone(layer: Blockwise, needed: AbstractSet[str], keys: AbstractSet[Any]) -> bool:
    """Return whether dask's clone renames all inputs: not in lists, nor keyword arguments."""
    inputs = [getattr(k, "key", k) for k, _ in layer.indices]
    listed = {key for key in inputs if isinstance(key, str)}
    return needed <= listed and keys.isdisjoint(layer.task.dependencies)


def blocks_in_memory(array: Any) -> Mapping[Any, Any] | None:
    """Return the blocks of an array if they are in its graph as data; else None."""
    return _data_of(array.dask.layers[array.name])


def _data_of(layer: Any) -> Mapping[Any, Any] | None:
    """Return the values of a layer by key if all of them are data; else None."""
    if not isinstance(layer, TaskLayer) or isinstance(layer, LazyLayer):
        return None
    # the layer of random numbers, for example, has data and tasks that read them
    all_data = all(isinstance(block, (np.ndarray, DataNode)) for block in layer.values())
    return layer.mapping if all_data else None


def with_data_inside(array: Any) -> da.Array:
    """Return the same array; its blockwise layers hold the blocks in memory that they read.

    dask fuses listed blocks with the tasks that read them one by one, and under other names: then
    a cluster runs an alias more for each block.
    """
    layers, dependencies = dict(array.dask.layers), dict(array.dask.dependencies)
    for name, layer in array.dask.layers.items():
        for source in dependencies[name] if isinstance(layer, Blockwise) else ():
            blocks = _data_of(layers[source])
            if blocks is not None and _reads_each_block(layers[name], source, blocks):
                layers[name] = _holding(layers[name], source, blocks)
                dependencies[name] = dependencies[name] - {source}
    graph = HighLevelGraph(layers, dependencies)
    return da.Array(graph, array.name, array.chunks, meta=array._meta)


def _reads_each_block(layer: Blockwise, source: str, blocks: Mapping[Any, Any]) -> bool:
    """Return whether each task of a layer reads single blocks of a source, without contraction."""
    inputs = [(given, index) for given, index in layer.indices if index is not None]
    axes = {axis for given, index in inputs if given == source for axis in index}
    return (
        source in layer.numblocks
        and len(blocks) == math.prod(layer.numblocks[source])
        and axes <= set(layer.output_indices)
    )


def _holding(layer: Blockwise, source: str, blocks: Mapping[Any, Any]) -> Blockwise:
    """Return a layer whose tasks hold the blocks of a source, under a name that is no layer's."""
    names: dict[Any, Any] = {source: f"blocks-of-{source}"}
    values = {k[1:]: b.value if isinstance(b, DataNode) else b for k, b in blocks.items()}
    held = BlockwiseDepDict(values, tuple(layer.numblocks[source]))
    twin = Blockwise(
        layer.output,
        layer.output_indices,
        layer.task,
        [(k if index is None else names.get(k, k), index) for k, index in layer.indices],
        {names.get(k, k): numbers for k, numbers in layer.numblocks.items()},
        concatenate=layer.concatenate,
        new_axes=layer.new_axes,
        output_blocks=layer.output_blocks,
        io_deps={**layer.io_deps, names[source]: held},
    )
    twin.annotations = layer.annotations  # without any, those of the run would be taken
    return twin


def join_blocks(blocks: Any) -> Any:
    """Return one array from nested lists of blocks, of any array type that dask knows."""
    return concatenate3(blocks)
