"""Bring the recipe to all tasks: a small one as an argument, any other as a task of its own.

A scheduler pickles each task by itself. A small recipe is pickled once, and unpickled once per
process: otherwise each chunk and each merge would have it pickled again, and each worker would
unpickle it again. That is half of the time that a tiny chunk takes, and more if the class of a UDF
is pickled by value, as those of notebooks are.

A recipe that is large, or needs values that are computed first, is one task that the others read
from: a cluster sends it to each worker once, and makes it again if it loses the workers that have
it. This task is an input without axes of the blockwise layer of chunks, so that dask still fuses
chunks with blockwise loading. After slices and `from_delayed`, dask does not: there, processes
would send every block twice (256 MiB: 0.5 to 8 s). Therefore a small recipe is not a task.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import cloudpickle
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from udfdask.backends.table import backend_of, check_block, plain_block, to_host
from udfdask.config import inline_bytes
from udfdask.graph.dask_internals.arrays import graph_array
from udfdask.graph.dask_internals.layers import ListedTasks
from udfdask.graph.dask_internals.tasks import Key, List, OutputTask, Task, TaskRef
from udfdask.names.origins import is_found
from udfdask.once_per_process import OncePerProcess
from udfdask.plan.recipe import CORRECTIONS, Recipe, Slot

GRID_BYTES = 512
"""Largest packed size of chunk grid and ROI in a recipe that is an argument of tasks.

The rest of a task takes three times as much: tasks must not grow with the scan.
"""

_received = OncePerProcess(16)
"""Packed recipes by their bytes: the tasks that a process receives share one, and its recipe, as
threads share the original."""


_bytes_of: WeakKeyDictionary[type, bytes] = WeakKeyDictionary()
"""For each class that was pickled by value, the packed recipe that gave it its attributes.

Such a class, for example one of a notebook, exists once per process: each recipe that is unpickled
gives it the attributes that it had when that recipe was packed.
"""


class PackedRecipe:
    """A recipe that tasks take as an argument; `now` returns the recipe."""

    __slots__ = ("_is_received", "_lock", "_packed", "_recipe")

    def __init__(self, packed: bytes | None, recipe: Recipe | None = None) -> None:
        self._packed = packed
        self._recipe = recipe
        self._is_received = False
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        if self._packed is None:  # raises the error of the object that cannot be pickled
            self._packed = cloudpickle.dumps(self._recipe)
        return (_shared, (self._packed,))

    @property
    def now(self) -> Recipe:
        """The recipe; a scheduler, which only passes it on, never unpickles it."""
        recipe = self._recipe
        if recipe is None or self._is_outdated(recipe):
            packed = self._packed
            assert packed is not None
            with self._lock:
                recipe = self._recipe
                if recipe is None or self._is_outdated(recipe):
                    self._recipe = recipe = pickle.loads(packed)
                    self._is_received = True
                    _bytes_of.update(dict.fromkeys(_by_value(recipe), packed))
        return recipe

    def _is_outdated(self, recipe: Recipe) -> bool:
        """Return whether another recipe has changed the attributes of a class since."""
        return self._is_received and any(
            _bytes_of.get(cls, self._packed) != self._packed for cls in _by_value(recipe)
        )


def _shared(packed: bytes) -> PackedRecipe:
    """Return the packed recipe that all tasks of this process with the same bytes share."""
    shared: PackedRecipe = _received.get(packed, lambda: PackedRecipe(packed))
    return shared


def _by_value(recipe: Recipe) -> list[type]:
    """Return the classes of UDFs that are not found in a module: they are pickled by value."""
    classes = (cls for udf in recipe.udfs for cls in udf.cls.__mro__)
    return [cls for cls in classes if not is_found(cls, cls.__qualname__)]


def pack_if_small(recipe: Recipe) -> PackedRecipe | None:
    """Return a recipe as an argument of each task; None if it is too large for that.

    Only pickling finds the data that functions and objects of the user contain. It stops at the
    limit.
    """
    limit = inline_bytes()
    if recipe.lazy_slots or recipe.grid.packed_size > GRID_BYTES or recipe.nbytes > limit:
        return None
    file = _LimitedFile(limit)
    try:
        cloudpickle.Pickler(file, protocol=5).dump(recipe)
    except _TooLargeError:
        return None
    except Exception:  # noqa: BLE001  # an object that only threads can use may raise anything
        return PackedRecipe(None, recipe)
    return PackedRecipe(b"".join(file.parts), recipe)


class _TooLargeError(Exception):
    """Stops pickling at the limit."""


class _LimitedFile:
    """A file in memory with a limit of its size."""

    def __init__(self, limit: int) -> None:
        self.parts: list[bytes] = []
        self._left = limit

    def write(self, data: Any) -> None:
        """Keep some bytes."""
        self._left -= memoryview(data).nbytes
        if self._left < 0:
            raise _TooLargeError
        self.parts.append(bytes(data))


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
