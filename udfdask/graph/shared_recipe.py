"""Make the recipe a separate task, if it is large or needs values that are computed first.

All tasks of a run need the recipe. A small recipe is an argument of each task. Any other is one
task that the others read from: a cluster then sends it to each worker once, and makes it again if
it loses the workers that have it.

This task is an input without axes of the blockwise layer of chunks, so that dask still fuses chunks
with blockwise loading. After slices and `from_delayed`, dask does not: there, processes would send
every block twice (256 MiB: 0.5 to 8 s). Therefore a small recipe is not a task.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph
from dask.sizeof import sizeof

from udfdask.backends.convert import to_host
from udfdask.backends.table import backend_of, check_block, plain_block
from udfdask.graph.dask_internals.arrays import graph_array
from udfdask.graph.dask_internals.layers import ListedTasks
from udfdask.graph.dask_internals.tasks import List, OutputTask, Task, TaskRef
from udfdask.graph.task_keys import Key
from udfdask.plan.recipe import CORRECTIONS, Recipe, Slot


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedRecipe:
    """A recipe as a task, with all layers that the task needs."""

    key: Key
    """Key of the task that returns the recipe."""
    layers: dict[str, Any]
    """Layers by name, including those of the parameters."""
    dependencies: dict[str, set[str]]
    """Names of the layers that each depends on."""


def shared_recipe(recipe: Recipe, name: str) -> SharedRecipe:
    """Return a task that returns a recipe with computed values of its lazy parameters.

    `name` is that of its layer.
    """
    lazy = list(recipe.lazy_slots)
    layers: dict[str, Any] = {}
    dependencies: dict[str, set[str]] = {}
    tasks: dict[Key, Task] = {}
    values = []
    depends: set[str] = set()
    for k, param in lazy:
        value = graph_array(recipe.lazy_value(k, param))  # corrections may hold any kind
        graph, own = value.__dask_graph__(), set(value.__dask_layers__())
        if not isinstance(graph, HighLevelGraph):  # for example a persisted Delayed
            given = f"given-{tokenize(value)}"
            own = {given}
            graph = HighLevelGraph.from_collections(given, graph, dependencies=())
        layers.update(graph.layers)
        dependencies.update({n: set(d) for n, d in graph.dependencies.items()})
        depends.update(own)
        gather, extra = value.__dask_postcompute__()
        key: Key = (name, k, param)
        blocks = _refs(value.__dask_keys__())
        tasks[key] = OutputTask(
            key, _gathered, gather, extra, (k, param), _announced(value), blocks
        )
        values.append(TaskRef(key))
    bare = recipe.with_params(dict.fromkeys(lazy))
    key = (name, 0)
    tasks[key] = OutputTask(key, _filled, bare, lazy, List(*values))
    layers[name] = ListedTasks(tasks)
    dependencies[name] = depends
    return SharedRecipe(key=key, layers=layers, dependencies=dependencies)


def _refs(keys: Any) -> Any:
    """Return nested lists of keys as nested lists of references."""
    return List(*map(_refs, keys)) if isinstance(keys, list) else TaskRef(keys)


Announced = tuple[tuple[int, ...], np.dtype[Any]]
"""Shape and dtype of a dask array."""


def _announced(value: Any) -> Announced | None:
    """Return shape and dtype of a dask array of NumPy arrays; None for all other collections."""
    meta = getattr(value, "_meta", None)
    if not isinstance(meta, np.ndarray) or isinstance(meta, np.ma.MaskedArray):
        return None
    return None if any(map(math.isnan, value.shape)) else (tuple(value.shape), value.dtype)


def _gathered(
    gather: Callable[..., Any],
    extra: tuple[Any, ...],
    slot: Slot,
    announced: Announced | None,
    blocks: Any,
) -> Any:
    """Return the computed value of a dask collection from the results of its keys.

    An array on a device is copied to the host, where UDFs and corrections expect it. Raise if it
    has not the announced shape and dtype; corrections check their own shapes.
    """
    number, name = slot
    what = f"lazy parameter {name!r}: an array"
    if announced is not None:
        blocks = _plain(blocks, what)  # dask drops masks when it joins blocks
    value = gather(blocks, *extra)
    if announced is not None and number != CORRECTIONS:
        check_block(value, *announced, what)
    return to_host(value) if backend_of(value).on_device else value


def _plain(blocks: Any, what: str) -> Any:
    """Return nested lists of blocks after a check of each block."""
    if isinstance(blocks, list):
        return [_plain(block, what) for block in blocks]
    return plain_block(blocks, what)


def _filled(recipe: Recipe, lazy: list[Slot], values: list[Any]) -> Recipe:
    """Return a recipe with computed values of its lazy parameters."""
    return recipe.with_params(dict(zip(lazy, values, strict=True)))


def _sizeof(recipe: Recipe) -> int:
    """Return the size in bytes; dask would count a few bytes for a class it does not know."""
    roi = recipe.grid.roi
    return recipe.nbytes + (0 if roi is None else int(roi.nbytes)) + 1000


sizeof.register(Recipe, _sizeof)
