"""What a run reads: its array, lazy parameters and shifts, and the files of all of them.

Files are found, so that no run overwrites them, if a graph, or an object in it, contains their
path: arrays of our own readers, memory maps, h5py, zarr, xarray and HyperSpy arrays, and arguments
of the functions that load blocks. Files cannot be found if the data were computed before
(`persist`, data in memory), if they have a network address, or if only the code of a function
contains their path.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import math
import os
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from udfdask.backends.table import backend_of, check_block, plain_block, to_host
from udfdask.base.types import is_lazy
from udfdask.graph.dask_internals.expressions import as_dask
from udfdask.graph.dask_internals.layers import ListedTasks
from udfdask.graph.dask_internals.tasks import Key, List, OutputTask, Task, TaskRef, task_contents
from udfdask.plan.parameters import with_parameters
from udfdask.plan.recipe import CORRECTIONS, Recipe, Slot
from udfdask.udf import UDF
from udfdask.udf.aux_data import AuxData
from udfdask.udf.params import lazy_places, member_at, with_all


def with_dask_arrays(value: Any) -> Any:
    """Return an option of a run, or a UDF, with dask arrays in place of those of dask-array."""
    if "dask_array" not in sys.modules:
        return value
    if isinstance(value, UDF):
        kwargs = {name: with_dask_arrays(one) for name, one in value._kwargs.items()}
        return with_parameters(value, kwargs)
    own = type(value).__module__.startswith("udfdask.")
    if own and is_dataclass(value) and not isinstance(value, type):
        twin = copy.copy(value)  # a new one would not have the labels of its arrays
        for field in fields(value):
            object.__setattr__(twin, field.name, as_dask(getattr(value, field.name)))
        return twin
    return with_all(value, as_dask) if any(lazy_places(value)) else as_dask(value)


def files_of_run(
    array: Any, udfs: Sequence[Any], descan: Any = None, corrections: Any = None
) -> tuple[str, ...]:
    """Return the absolute paths of the files that a run reads: of the data and of lazy values."""
    given = [array, getattr(descan, "shifts", descan)]
    given += [getattr(corrections, name, None) for name in ("dark", "gain", "excluded_pixels")]
    for udf in udfs:
        for parameter in udf._kwargs.values() if isinstance(udf, UDF) else ():
            value = parameter.data if isinstance(parameter, AuxData) else parameter
            given += [value, *(member_at(value, place) for place in lazy_places(value))]
    return data_files(*filter(is_lazy, given))


def shared_recipe(recipe: Recipe, name: str) -> tuple[Key, dict[str, Any], dict[str, set[str]]]:
    """Return key, layers and dependencies of a task that returns a recipe without lazy values."""
    lazy = list(recipe.lazy_slots)
    layers: dict[str, Any] = {}
    dependencies: dict[str, set[str]] = {}
    tasks: dict[Key, Task] = {}
    values = []
    depends: set[str] = set()
    for slot in lazy:
        value = recipe.lazy_value(*slot)
        graph, own = value.__dask_graph__(), set(value.__dask_layers__())
        if not isinstance(graph, HighLevelGraph):  # for example a persisted Delayed
            given = f"given-{tokenize(value)}"
            own = {given}
            graph = HighLevelGraph.from_collections(given, graph, dependencies=())
        layers.update(graph.layers)
        dependencies.update({n: set(d) for n, d in graph.dependencies.items()})
        depends.update(own)
        gather, extra = value.__dask_postcompute__()
        key: Key = (name, *slot)
        blocks = _refs(value.__dask_keys__())
        tasks[key] = OutputTask(key, _gathered, gather, extra, slot, _announced(value), blocks)
        values.append(TaskRef(key))
    bare = recipe.with_params(dict.fromkeys(lazy))
    key = (name, 0)
    tasks[key] = OutputTask(key, _filled, bare, lazy, List(*values))
    layers[name] = ListedTasks(tasks)
    dependencies[name] = depends
    return key, layers, dependencies


def _refs(keys: Any) -> Any:
    """Return nested lists of keys as nested lists of references."""
    return List(*map(_refs, keys)) if isinstance(keys, list) else TaskRef(keys)


def _announced(value: Any) -> tuple[tuple[int, ...], np.dtype[Any]] | None:
    """Return shape and dtype of a dask array of NumPy arrays; None for all other collections."""
    meta = getattr(value, "_meta", None)
    if not isinstance(meta, np.ndarray) or isinstance(meta, np.ma.MaskedArray):
        return None
    return None if any(map(math.isnan, value.shape)) else (tuple(value.shape), value.dtype)


def _gathered(
    gather: Callable[..., Any],
    extra: tuple[Any, ...],
    slot: Slot,
    announced: tuple[tuple[int, ...], np.dtype[Any]] | None,
    blocks: Any,
) -> Any:
    """Return the computed value of a dask collection on the host, after checks of its shape."""
    number, name, _ = slot
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


MAX_DEPTH = 12
"""Depth to which objects inside of objects are searched: xarray wraps a file name six times."""
MAX_OBJECTS = 20_000
"""Number of objects, other than tasks and containers, that are searched in total."""

_NOTHING = (slice, int, float, complex, bool, bytes, type(None), type, np.dtype)
_CONTAINERS = (tuple, list, set, frozenset, dict)


def data_files(*collections: Any) -> tuple[str, ...]:
    """Return the absolute paths of the files and zarr stores that dask collections read."""
    layers: dict[str, Any] = {}
    for collection in collections:
        graph = collection.__dask_graph__()
        layers.update(getattr(graph, "layers", {str(id(graph)): graph}))
    search = _Search()
    for layer in layers.values():
        # a blockwise layer has one task that stands for all
        parts = getattr(layer, "contents", None) or task_contents(layer)
        search.through(layer.values() if parts is None else parts)
    return tuple(search.found)


class _Search:
    """Searches objects for paths; a function that calls itself would keep the data of a run."""

    def __init__(self) -> None:
        self.found: dict[str, None] = {}
        self._texts: set[str] = set()
        # objects by id, kept alive: ids of deleted objects are used again
        self._seen: dict[int, Any] = {}

    def through(self, values: Iterable[Any], depth: int = 0) -> None:
        """Search values and the objects inside of them."""
        for value in values:
            if isinstance(value, str):
                if value and value not in self._texts and (path := named_file(value)) is not None:
                    self.found[str(path)] = None
                self._texts.add(value)
            elif isinstance(value, _NOTHING):
                continue
            elif (held := task_contents(value)) is not None:
                self.through(held, depth)
            elif depth < MAX_DEPTH:
                if isinstance(value, _CONTAINERS):
                    inside = value.values() if isinstance(value, dict) else value
                    self.through(inside, depth + 1)
                elif id(value) not in self._seen and len(self._seen) < MAX_OBJECTS:
                    self._seen[id(value)] = value
                    self.through(_contents(value), depth + 1)


def named_file(text: str) -> Path | None:
    """Return the path of the file or zarr store that a text names, or None (in 2 us for others)."""
    name = text.removeprefix("file://")
    if not os.path.exists(name):  # noqa: PTH110  # Path.exists takes 15 us
        return None
    path = Path(name)
    from udfdask.base.targets import is_zarr  # runs over data in memory need no zarr

    try:
        return path.absolute() if path.is_file() or is_zarr(path) else None
    except (OSError, ValueError):  # too long, or with a NUL: not a path
        return None


def _contents(value: Any) -> Iterator[Any]:
    """Yield the parts of an object that may contain a path, without reading any data."""
    if isinstance(value, os.PathLike):
        yield os.fsdecode(value)
    elif isinstance(value, np.ndarray):
        while isinstance(value, np.ndarray):  # an array may be a view of one that is mapped
            yield getattr(value, "filename", None)
            value = value.base
    elif isinstance(value, functools.partial):
        yield from (value.func, value.args, value.keywords)
    elif isinstance(value, types.MethodType):
        yield from (value.__self__, value.__func__)
    elif isinstance(value, types.FunctionType):
        yield from _of_function(value)
    elif type(value).__module__.partition(".")[0] == "h5py":
        with contextlib.suppress(AttributeError, ValueError, RuntimeError):  # no file, or closed
            yield os.fsdecode(value.file.filename)
    elif not isinstance(value, (types.ModuleType, types.BuiltinFunctionType)):
        attributes = _attributes(value)
        yield from attributes.values()
        if hasattr(type(value), "local_files"):  # our reader of references to parts of files
            yield from value.local_files()
        store, path = attributes.get("store"), attributes.get("path")
        if store is not None and isinstance(path, str):  # zarr: a node within a store
            inner = _attributes(store)
            root = inner.get("root", inner.get("path"))
            if isinstance(root, (str, os.PathLike)):
                yield Path(root) / path


def _of_function(function: types.FunctionType) -> Iterator[Any]:
    """Yield the defaults of a function, its closure, and the global paths that it names."""
    yield from (function.__defaults__, function.__kwdefaults__)
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # not yet assigned
            yield cell.cell_contents
    named = (function.__globals__.get(name) for name in function.__code__.co_names)
    yield from (value for value in named if isinstance(value, (str, os.PathLike)))


def _attributes(value: Any) -> dict[str, Any]:
    """Return the stored attributes of an object, in slots too, without calling properties."""
    try:
        state = object.__getstate__(value)
    except (AttributeError, TypeError):  # an odd class
        return {}
    stored, slots = state if isinstance(state, tuple) else (state, None)
    return {**(slots or {}), **(stored or {})}
