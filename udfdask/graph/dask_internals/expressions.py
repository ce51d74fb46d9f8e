"""Arrays of the package dask-array, which are expressions, as dask arrays, and the way back.

A dask array made of an expression has a layer for each node, whose `source` is the node; that of
the layer of its own blocks is the expression. On the way back, the first sources are the inputs of
the new expression. So dask optimizes a run together with all else that is computed from them.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dask.array as da
from dask import base
from dask._expr import FinalizeCompute
from dask._task_spec import Alias
from dask.core import flatten
from dask.highlevelgraph import HighLevelGraph

from udfdask.base.types import is_expression_array
from udfdask.graph.dask_internals.layers import LazyLayer


class NodeLayer(LazyLayer):
    """The tasks of a node of an expression."""

    has_legacy_tasks = True

    def __init__(self, node: Any) -> None:
        super().__init__(math.prod(node.numblocks), type(node)._layer, node)
        self.source = node
        self.collection_annotations = {"chunks": node.chunks, "dtype": node.dtype}

    @property
    def contents(self) -> list[Any]:
        """What the tasks are made of."""
        return [one for one in self.source.operands if not hasattr(one, "_layer")]


class AliasLayer(LazyLayer):
    """The blocks of an array under another name."""

    source: Any = None
    contents = ()  # nothing that names a file

    def __init__(self, name: str, target: str, numblocks: Sequence[int]) -> None:
        super().__init__(math.prod(numblocks), _aliases, name, target, tuple(numblocks))


def _aliases(name: str, target: str, numblocks: tuple[int, ...]) -> dict[Any, Any]:
    """Return the tasks of an `AliasLayer`."""
    places = itertools.product(*map(range, numblocks))
    return {(name, *k): Alias((name, *k), (target, *k)) for k in places}


def as_dask(value: Any) -> Any:
    """Return an array of dask-array, also in an object of xarray, as a dask array; others as is."""
    if not is_expression_array(value):
        # those of sparse arrays are an array
        of_xarray = isinstance(getattr(value, "coords", None), Mapping)
        return _with_inner(value, as_dask) if of_xarray else value
    expr, lowered = value.expr, value.freeze_chunks().expr.lower_completely()
    layers, depends = _layers_of(lowered)
    if lowered._name != expr._name:
        layers[expr._name] = AliasLayer(expr._name, lowered._name, expr.numblocks)
        depends[expr._name] = {lowered._name}
    layers[expr._name].source = expr
    return da.Array(HighLevelGraph(layers, depends), expr._name, expr.chunks, meta=expr._meta)


def _with_inner(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a DataArray or Dataset in which all arrays of dask-array are changed."""
    new = {
        name: one.copy(data=change(one.data))
        for name, one in getattr(value, "variables", value.coords).items()
        if one.chunks is not None and is_expression_array(one.data)  # `data` may read a file
    }
    if hasattr(value, "data_vars"):
        return value.assign(new) if new else value
    value = value.assign_coords(new) if new else value
    is_ours = value.chunks is not None and is_expression_array(value.data)
    return value.copy(data=change(value.data)) if is_ours else value


def _layers_of(lowered: Any) -> tuple[dict[str, Any], dict[str, set[str]]]:
    """Return the layers of the nodes of an expression, and their dependencies."""
    layers: dict[str, Any] = {}
    depends: dict[str, set[str]] = {}
    for node in lowered.walk():
        if hasattr(node, "run_layers"):
            own, needs = node.run_layers()
            layers.update(own)
            depends.update(needs)
        else:
            layers[node._name] = NodeLayer(node)
            depends[node._name] = {one._name for one in node.dependencies()}
    return layers, depends


def as_expression(
    array: da.Array, finish: tuple[Callable[..., Any], Any, Any] | None = None
) -> Any:
    """Return a dask array as an array of dask-array, whose expression has its sources as inputs.

    `finish` is a function that makes the computed value of tasks, its other arguments, and the keys
    of the tasks; by default, blocks are joined.
    """
    from udfdask.graph.dask_internals.run_expressions import new_array

    graph = array.dask
    if (same := getattr(graph.layers[array.name], "source", None)) is not None:
        return sys.modules["dask_array"].Array(same)
    layers: dict[str, Any] = {}
    sources: dict[str, Any] = {}
    todo = [array.name]
    while todo:
        name = todo.pop()
        if (source := getattr(graph.layers[name], "source", None)) is not None:
            sources[name] = source
        elif name not in layers:
            layers[name] = graph.layers[name]
            todo += graph.dependencies[name]
    own = HighLevelGraph(layers, {name: graph.dependencies[name] for name in layers})
    tasks = da.Array(own, array.name, array.chunks, meta=array._meta)
    return new_array(tasks, sources, finish)


class ComputedFromGraph(base.DaskMethodsMixin):
    """A collection over a dask graph that is computed in place of one that is an expression."""

    __dask_optimize__ = staticmethod(da.Array.__dask_optimize__)
    __dask_scheduler__ = staticmethod(da.Array.__dask_scheduler__)

    def __init__(self, graph: Any, keys: list[Any], finish: tuple[Callable[..., Any], Any]) -> None:
        self._graph = graph
        self._keys = keys
        self._finish = finish

    def __dask_graph__(self) -> Any:
        return self._graph

    def __dask_keys__(self) -> list[Any]:
        return self._keys

    def __dask_layers__(self) -> tuple[str, ...]:
        return tuple({key[0] for key in flatten(self._keys)})

    def __dask_postcompute__(self) -> tuple[Callable[..., Any], Any]:
        return self._finish

    def __dask_postpersist__(self) -> tuple[Callable[..., Any], Any]:
        return ComputedFromGraph, (self._keys, self._finish)


def in_one_graph(values: Any) -> Any:
    """Return values for `dask.compute`, with all expressions optimized together, as dask graphs.

    dask.array's optimization then fuses the loading of a block with the chunk task that reads it.
    dask-array does not: processes would send each block twice.
    """
    collections, repack = base.unpack_collections(*values)
    inside = [_expressions_in(one) for one in collections]
    if not any(inside):
        return values
    from udfdask.graph.dask_internals.run_expressions import optimized_expressions

    made = iter(optimized_expressions([one for found in inside for one in found]))
    new = []
    for given, found in zip(collections, inside, strict=True):
        layers: dict[str, Any] = {}
        depends: dict[str, set[str]] = {}
        keys = []
        for one in itertools.islice(made, len(found)):
            own, needs = _layers_of(one)
            layers.update(own)
            depends.update(needs)
            keys.append(one.__dask_keys__())
        keys = keys[0] if hasattr(type(given), "expr") else keys
        finish = given.__dask_postcompute__()
        graph = HighLevelGraph(layers, depends)
        new.append(ComputedFromGraph(graph, keys, finish) if found else given)
    return repack(new)


def _expressions_in(collection: Any) -> list[Any]:
    """Return the expressions that a collection is computed from; none if it has a graph."""
    if hasattr(type(collection), "expr"):  # a Delayed has any attribute
        return [collection.expr] if hasattr(collection, "expr") else []
    return list(getattr(collection, "__dask_exprs__", list)() or ())


def in_kind_of(given: Any, array: Any) -> Any:
    """Return a dask array as an array of dask-array if `given` is one; all else unchanged."""
    return as_expression(array) if is_expression_array(given) else array


def count_of_expressions(every: Sequence[tuple[da.Array, Any]]) -> int:
    """Return how many tasks compute the arguments of `as_expression`, all of them together."""
    graphs = in_one_graph([as_expression(*one) for one in every])
    expression = base.collections_to_expr(graphs)
    return len(FinalizeCompute(expression).optimize().__dask_graph__())
