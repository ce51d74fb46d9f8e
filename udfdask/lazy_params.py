"""Parameters that are dask collections: computed first, then handed to every task."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from dask._task_spec import List, Task, TaskRef
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

from udfdask.backends.announced import check_block, plain_block
from udfdask.backends.device import is_on_device, to_host
from udfdask.chunk_layers import Key
from udfdask.output_task import OutputTask
from udfdask.recipe import CORRECTIONS, Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class LazyRecipe:
    """A recipe as a task, with the layers that it needs."""

    key: Key
    """Key of the task that gives the recipe."""
    layers: dict[str, Any]
    """Layers by name, those of the parameters included."""
    dependencies: dict[str, set[str]]
    """Names of the layers that each depends on."""


def lazy_recipe(recipe: Recipe, name: str) -> LazyRecipe | None:
    """Return a task that fills in the lazy parameters of a recipe; None if it has none."""
    lazy = list(recipe.lazy_slots)
    if not lazy:
        return None
    layers: dict[str, Any] = {}
    dependencies: dict[str, set[str]] = {}
    tasks: dict[Key, Task] = {}
    values = []
    depends: set[str] = set()
    for k, param in lazy:
        value = recipe.lazy_value(k, param)
        graph, own = value.__dask_graph__(), set(value.__dask_layers__())
        if not isinstance(graph, HighLevelGraph):  # as of a Delayed that has been persisted
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
    layers[name] = MaterializedLayer(tasks)
    dependencies[name] = depends
    return LazyRecipe(key=key, layers=layers, dependencies=dependencies)


def _refs(keys: Any) -> Any:
    """Return nested lists of keys as nested lists of references."""
    return List(*map(_refs, keys)) if isinstance(keys, list) else TaskRef(keys)


Announced = tuple[tuple[int, ...], np.dtype[Any]]
"""Shape and dtype of a dask array."""


def _announced(value: Any) -> Announced | None:
    """Return what a dask array without masks announces; None for all other collections."""
    meta = getattr(value, "_meta", None)
    if not isinstance(meta, np.ndarray) or isinstance(meta, np.ma.MaskedArray):
        return None
    return None if any(map(math.isnan, value.shape)) else (tuple(value.shape), value.dtype)


def _gathered(
    gather: Callable[..., Any],
    extra: tuple[Any, ...],
    slot: tuple[int, str],
    announced: Announced | None,
    blocks: Any,
) -> Any:
    """Return the computed value of a dask collection from the results of its keys.

    An array on a device comes to the host, where UDFs and corrections expect it. One that is not
    what was announced is refused; corrections look at shapes themselves.
    """
    number, name = slot
    what = f"lazy parameter {name!r}: an array"
    if announced is not None:
        blocks = _plain(blocks, what)  # joined by dask, they would lose their masks
    value = gather(blocks, *extra)
    if announced is not None and number != CORRECTIONS:
        check_block(value, *announced, what)
    return to_host(value) if is_on_device(value) else value


def _plain(blocks: Any, what: str) -> Any:
    """Return nested lists of blocks with each of them checked."""
    if isinstance(blocks, list):
        return [_plain(block, what) for block in blocks]
    return plain_block(blocks, what)


def _filled(recipe: Recipe, lazy: list[tuple[int, str]], values: list[Any]) -> Recipe:
    """Return a recipe with its lazy parameters filled in."""
    return recipe.with_params(dict(zip(lazy, values, strict=True)))
