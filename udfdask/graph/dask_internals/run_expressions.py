"""Expressions of dask-array with the tasks of runs; imported only if dask-array is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import dask.array as da
import dask_array
from dask._expr import _ExprSequence
from dask.base import tokenize
from dask.utils import ensure_dict
from dask_array._expr import ArrayExpr, ChunksFreeze, FinalizeComputeArray

from udfdask.graph.dask_internals.expressions import AliasLayer
from udfdask.graph.dask_internals.layers import LazyLayer
from udfdask.graph.dask_internals.tasks import List, Task, TaskRef


def new_array(
    tasks: da.Array,
    sources: Mapping[str, Any],
    finish: tuple[Callable[..., Any], Any, Any] | None,
) -> Any:
    """Return an array of dask-array, see `as_expression`; `tasks` has no layers of `sources`."""
    known = tuple((name, source.chunks) for name, source in sources.items())
    return dask_array.Array(RunExpr(tasks, known, finish, *sources.values()))


def optimized_expressions(given: list[Any]) -> list[Any]:
    """Return expressions as dask-array computes them, optimized and fused together."""
    return list(ArrayExpr._fuse_many(_ExprSequence(*given).optimize().operands))


class RunExpr(ArrayExpr):  # type: ignore[misc]
    """The blocks of a result over expressions, which are operands after the parameters.

    The operands are as the user made them, so that dask optimizes them with all others. Tasks are
    listed after that, and their keys are those of `tasks`: results share them by name.
    """

    _parameters = ("tasks", "sources", "finish")

    def __init__(self, *_: Any, **__: Any) -> None:
        """Do nothing; without this, a kept result and a result of the same name would be one."""

    def __dask_tokenize__(self) -> Any:
        inputs = [one._name for one in self.dependencies()]
        layers = sorted(self.tasks.dask.layers)
        return tokenize(type(self).__name__, self.tasks.name, layers, inputs)

    @cached_property
    def _name(self) -> str:
        return f"{self.tasks.name}-{self.deterministic_token}"

    @cached_property
    def _meta(self) -> Any:
        return self.tasks._meta

    @cached_property
    def chunks(self) -> Any:
        """The sizes of the blocks along each axis."""
        return self.tasks.chunks

    def _lower(self) -> Any:
        pairs = zip(self.dependencies(), self.sources, strict=True)
        frozen = [ChunksFreeze(one, chunks) for one, (_, chunks) in pairs]
        return ListedRun(self.tasks, self.sources, self.finish, *frozen)

    def finalize_compute(self) -> Any:
        """Return the expression of the computed value."""
        if self.finish is None:
            return FinalizeComputeArray(self)
        return FinishedRun(self, self.finish)


class ListedRun(RunExpr):
    """A `RunExpr` whose operands are optimized."""

    def _lower(self) -> None:
        return None

    def run_layers(self) -> tuple[dict[str, Any], dict[str, set[str]]]:
        """Return the layers of the run, which read from the operands, and their dependencies."""
        own, last = self.tasks.dask, self.tasks.name
        layers, depends = dict(own.layers), {n: set(d) for n, d in own.dependencies.items()}
        if type(layers[last]) is LazyLayer:
            layers[self._name] = layers.pop(last).renamed(self._name)
            depends[self._name] = depends.pop(last)
        else:
            layers[self._name] = AliasLayer(self._name, last, self.numblocks)
            depends[self._name] = {last}
        for (name, _), one in zip(self.sources, self.dependencies(), strict=True):
            if name != one._name:
                layers[name] = AliasLayer(name, one._name, one.numblocks)
                depends[name] = {one._name}
        return layers, depends

    def _layer(self) -> dict[Any, Any]:
        layers, _ = self.run_layers()
        return {key: task for layer in layers.values() for key, task in ensure_dict(layer).items()}


class FinishedRun(FinalizeComputeArray):  # type: ignore[misc]
    """The computed value of all blocks of a `RunExpr`."""

    _parameters = ("arr", "finish")

    def _layer(self) -> dict[Any, Any]:
        function, extra, keys = self.finish
        return {self._name: Task(self._name, function, List(*map(TaskRef, keys)), *extra)}
