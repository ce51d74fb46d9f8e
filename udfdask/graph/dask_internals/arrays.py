"""Arrays over graphs, expression arrays, and blocks of arrays."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import dask.array as da
import numpy as np
from dask._task_spec import DataNode, convert_legacy_graph
from dask.array.core import Array as GraphArray
from dask.array.core import concatenate3
from dask.base import clone_key
from dask.blockwise import Blockwise
from dask.highlevelgraph import HighLevelGraph
from dask.highlevelgraph import MaterializedLayer as TaskLayer

from udfdask.graph.dask_internals.layers import ListedTasks

__all__ = ["GraphArray"]


def graph_array(value: Any) -> Any:
    """Lower an expression array to an array over a `HighLevelGraph`; return anything else as it is.

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


def loaded_again(array: Any, seed: str) -> GraphArray:
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
    return GraphArray(graph, clone_key(array.name, seed), array.chunks, meta=array._meta)


def _can_clone(layer: Blockwise, needed: AbstractSet[str], keys: AbstractSet[Any]) -> bool:
    """Return whether dask's clone renames all inputs: not in lists, nor keyword arguments."""
    inputs = [getattr(k, "key", k) for k, _ in layer.indices]
    listed = {key for key in inputs if isinstance(key, str)}
    return needed <= listed and keys.isdisjoint(layer.task.dependencies)


def blocks_in_memory(array: Any) -> Mapping[Any, Any] | None:
    """Return the blocks of an array if they are in its graph as data; else None."""
    layer: Any = array.dask.layers[array.name]
    if not isinstance(layer, TaskLayer):
        return None
    # the layer of random numbers, for example, has data and tasks that read them
    all_data = all(isinstance(block, (np.ndarray, DataNode)) for block in layer.values())
    return layer.mapping if all_data else None


def join_blocks(blocks: Any) -> Any:
    """Return one array from nested lists of blocks, of any array type that dask knows."""
    return concatenate3(blocks)
