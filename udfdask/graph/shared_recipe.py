"""The recipe as a task of its own, for recipes that are heavy or that need values computed first.

Every chunk, merge and output task of a run has the recipe. A small one is an argument of these
tasks, which dask then fuses with whatever loads their blocks. All others are one task that they
read from, by whichever function dask is started: a cluster sends the recipe to each worker once,
and makes it again when the workers that hold it are lost. dask then fuses chunk tasks with
blockwise layers alone. With slices or `from_delayed` in front, processes would ship every block
twice (256 MiB: 0.5 to 8 s), so that not every recipe is such a task.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cloudpickle
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph
from dask.sizeof import sizeof

from udfdask.arrays.backends.check_block import check_block, plain_block
from udfdask.arrays.backends.convert import to_host
from udfdask.arrays.backends.table import backend_of
from udfdask.config import inline_bytes
from udfdask.graph.chunk_layers import Key
from udfdask.graph.dask_internals import List, OutputTask, Task, TaskLayer, TaskRef, graph_array
from udfdask.plan.recipe import CORRECTIONS, Recipe, Slot

GRID_BYTES = 512
"""Packed size of the chunk grid and ROI up to which a recipe may be an argument of tasks.

A third of what a task takes without them: tasks must not grow with the scan.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedRecipe:
    """A recipe as a task, with the layers that it needs."""

    key: Key
    """Key of the task that gives the recipe."""
    layers: dict[str, Any]
    """Layers by name, those of the parameters included."""
    dependencies: dict[str, set[str]]
    """Names of the layers that each depends on."""


def shared_recipe(recipe: Recipe, name: str) -> SharedRecipe:
    """Return a task that gives a recipe, lazy parameters filled in; `name` is that of its layer."""
    lazy = list(recipe.lazy_slots)
    layers: dict[str, Any] = {}
    dependencies: dict[str, set[str]] = {}
    tasks: dict[Key, Task] = {}
    values = []
    depends: set[str] = set()
    for k, param in lazy:
        value = graph_array(recipe.lazy_value(k, param))  # corrections may hold any kind
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
    layers[name] = TaskLayer(tasks)
    dependencies[name] = depends
    return SharedRecipe(key=key, layers=layers, dependencies=dependencies)


def is_small(recipe: Recipe) -> bool:
    """Return whether each task takes the recipe itself.

    Nothing but pickling finds what functions and objects of the user hold.
    """
    limit = inline_bytes()
    if recipe.lazy_slots or recipe.grid.packed_size > GRID_BYTES or recipe.nbytes > limit:
        return False
    meter = _Meter(limit)
    try:
        cloudpickle.Pickler(meter, protocol=5, buffer_callback=meter.skip).dump(recipe)
    except _TooLargeError:
        return False
    except Exception:  # noqa: BLE001  # whatever a user's object does that only threads can take
        return True
    return True


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
    slot: Slot,
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
    return to_host(value) if backend_of(value).on_device else value


def _plain(blocks: Any, what: str) -> Any:
    """Return nested lists of blocks with each of them checked."""
    if isinstance(blocks, list):
        return [_plain(block, what) for block in blocks]
    return plain_block(blocks, what)


def _filled(recipe: Recipe, lazy: list[Slot], values: list[Any]) -> Recipe:
    """Return a recipe with its lazy parameters filled in."""
    return recipe.with_params(dict(zip(lazy, values, strict=True)))


class _TooLargeError(Exception):
    """Ends the pickling of what is larger than it may be."""


class _Meter:
    """A file that only counts what is written to it, up to a limit in bytes."""

    def __init__(self, limit: int) -> None:
        self.left = limit

    def write(self, data: bytes) -> None:
        """Count some bytes."""
        self._take(len(data))

    def skip(self, buffer: Any) -> None:
        """Count an array, which is not copied for it."""
        self._take(buffer.raw().nbytes)

    def _take(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise _TooLargeError


def _sizeof(recipe: Recipe) -> int:
    """Return the size of a recipe in bytes: dask counts it as a few bytes otherwise."""
    roi = recipe.grid.roi
    return recipe.nbytes + (0 if roi is None else int(roi.nbytes)) + 1000


sizeof.register(Recipe, _sizeof)
