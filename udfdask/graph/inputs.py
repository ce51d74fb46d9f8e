"""Find what a run reads: its array, lazy parameters and shifts, and the files of all of them.

Files are found, so that no run overwrites them, if a graph, or an object in it, contains their
path: arrays of our own readers, memory maps, h5py, zarr, xarray and HyperSpy arrays, and arguments
of the functions that load blocks. Files cannot be found if the data were computed before
(`persist`, data in memory), if they have a network address, or if only the code of a function
contains their path.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import types
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from udfdask.descan import Descan
from udfdask.graph.dask_internals.arrays import graph_array
from udfdask.graph.dask_internals.tasks import task_contents
from udfdask.plan.parameters import new_instance
from udfdask.types import is_lazy
from udfdask.udf import UDF
from udfdask.udf.aux_data import AuxData
from udfdask.udf.params import lazy_places, member_at, with_members


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What a run reads; nothing is checked yet."""

    array: Any
    """The data that the user passed; an expression array is lowered to a graph."""
    udfs: list[Any]
    """The UDFs that the user passed, their parameters lowered to graphs."""
    descan: Any
    """The shifts of frames that the user passed, lowered to a graph."""
    files: tuple[str, ...]
    """Files and stores that the data, lazy parameters and lazy shifts are read from, if they can be
    found."""


def inputs_of(array: Any, udfs: Sequence[Any], descan: Any = None) -> Inputs:
    """Return what a run of UDFs over an array reads, with expression arrays lowered to graphs."""
    array = graph_array(array)
    udfs = [_over_graphs(udf) for udf in udfs]
    shifts = descan.shifts if isinstance(descan, Descan) else descan
    lowered = graph_array(shifts)
    if lowered is not shifts:
        descan = replace(descan, shifts=lowered) if isinstance(descan, Descan) else lowered
    lazy = [array, *_collections_of(udfs)] if is_lazy(array) else []
    if lazy and is_lazy(lowered):
        lazy.append(lowered)
    return Inputs(array=array, udfs=udfs, descan=descan, files=data_files(*lazy))


def _over_graphs(udf: Any) -> Any:
    """Return a UDF whose parameters hold no expression arrays."""
    if not isinstance(udf, UDF):
        return udf
    kwargs = {name: _over_graph(value) for name, value in udf._kwargs.items()}
    same = all(kwargs[name] is value for name, value in udf._kwargs.items())
    return udf if same else new_instance(type(udf), kwargs)


def _over_graph(value: Any) -> Any:
    """Return a parameter with arrays over graphs in place of expression arrays."""
    if isinstance(value, AuxData):
        data = graph_array(value.data)
        return value if data is value.data else replace(value, data=data)
    if is_lazy(value):
        return graph_array(value)
    members = {place: member_at(value, place) for place in lazy_places(value)}
    lowered = {place: graph_array(member) for place, member in members.items()}
    changed = any(lowered[place] is not member for place, member in members.items())
    return with_members(value, lowered) if changed else value


def _collections_of(udfs: Sequence[Any]) -> list[Any]:
    """Return the dask collections among the parameters, those in containers included."""
    values = [value for udf in udfs if isinstance(udf, UDF) for value in udf._kwargs.values()]
    given = [value.data if isinstance(value, AuxData) else value for value in values]
    lazy = [value for value in given if is_lazy(value)]
    return lazy + [member_at(value, place) for value in given for place in lazy_places(value)]


MAX_DEPTH = 12
"""Depth to which objects inside of objects are searched: xarray wraps a file name six times."""
MAX_OBJECTS = 20_000
"""Number of objects, other than tasks and containers, that are searched in total."""

_NOTHING = (slice, int, float, complex, bool, bytes, type(None), type, np.dtype)
_CONTAINERS = (tuple, list, set, frozenset)


def data_files(*collections: Any) -> tuple[str, ...]:
    """Return the absolute paths of the files and zarr stores that dask collections read."""
    search = _Search()
    layers: dict[str, Any] = {}
    for collection in collections:
        graph = collection.__dask_graph__()
        layers.update(getattr(graph, "layers", {str(id(graph)): graph}))
    for layer in layers.values():
        parts = task_contents(layer)  # a blockwise layer has one task that stands for all
        search.search(layer.values() if parts is None else parts)
    return tuple(search.found)


def named_file(text: str) -> Path | None:
    """Return the absolute path of the file or zarr store that a text names; None for other texts.

    Most texts are names of tasks: for them, it takes 2 us.
    """
    name = text.removeprefix("file://")
    if not os.path.exists(name):  # noqa: PTH110  # Path.exists takes 15 us
        return None
    path = Path(name)
    from udfdask.writing.stores import is_zarr  # runs over data in memory need no zarr

    try:
        return path.absolute() if path.is_file() or is_zarr(path) else None
    except (OSError, ValueError):  # too long, or with a NUL: not a path
        return None


class _Search:
    """A search with the files found so far and the objects searched so far."""

    def __init__(self) -> None:
        self.found: dict[str, None] = {}
        self._texts: set[str] = set()
        self._seen: dict[
            int, Any
        ] = {}  # objects by id, kept alive: ids of deleted objects are used again

    def search(self, values: Iterable[Any], depth: int = 0) -> None:
        """Find files in values."""
        for value in values:
            if isinstance(value, _NOTHING):
                continue
            if isinstance(value, str):
                self._note(value)
            elif (held := task_contents(value)) is not None:
                self.search(held, depth)
            elif depth < MAX_DEPTH:
                if isinstance(value, _CONTAINERS):
                    self.search(value, depth + 1)
                elif isinstance(value, dict):
                    self.search(value.values(), depth + 1)
                else:
                    self._search_object(value, depth)

    def _search_object(self, value: Any, depth: int) -> None:
        """Find files in an object, once, though it may be in many tasks."""
        if id(value) in self._seen or len(self._seen) >= MAX_OBJECTS:
            return
        self._seen[id(value)] = value
        self.search(_contents(value), depth + 1)

    def _note(self, text: str) -> None:
        """Note a text if it is the path of a file or a zarr store."""
        if text in self._texts or not text:
            return
        self._texts.add(text)
        path = named_file(text)
        if path is not None:
            self.found[str(path)] = None


def _contents(value: Any) -> Iterator[Any]:
    """Yield the parts of an object that may contain a path, without reading any data."""
    if isinstance(value, os.PathLike):
        yield os.fsdecode(value)
    elif isinstance(value, np.ndarray):
        yield from _numpy_file(value)
    elif isinstance(value, functools.partial):
        yield from (value.func, value.args, value.keywords)
    elif isinstance(value, types.MethodType):
        yield from (value.__self__, value.__func__)
    elif isinstance(value, types.FunctionType):
        yield from (value.__defaults__, value.__kwdefaults__)
        yield from _values(value.__closure__ or ())
        named = (value.__globals__.get(name) for name in value.__code__.co_names)
        yield from (v for v in named if isinstance(v, (str, os.PathLike)))
    elif type(value).__module__.partition(".")[0] == "h5py":
        yield from _open_hdf5(value)
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


def _values(cells: Iterable[types.CellType]) -> Iterator[Any]:
    """Yield the values of the closure of a function."""
    for cell in cells:
        try:
            yield cell.cell_contents
        except ValueError:  # not yet assigned
            continue


def _numpy_file(array: Any) -> Iterator[Any]:
    """Yield the file that an array, or the array that it is a view of, is mapped from."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            yield array.filename
        array = array.base


def _open_hdf5(value: Any) -> Iterator[str]:
    """Yield the name of the file that an open h5py object belongs to."""
    try:
        yield os.fsdecode(value.file.filename)
    except (AttributeError, ValueError, RuntimeError):  # another kind of object, or closed
        return


def _attributes(value: Any) -> dict[str, Any]:
    """Return the stored attributes of an object, without calling properties."""
    stored: dict[str, Any] = {}
    slots = [vars(cls).get("__slots__", ()) for cls in type(value).__mro__]
    names = itertools.chain.from_iterable([s] if isinstance(s, str) else s for s in slots)
    for name in names:
        try:
            stored[name] = object.__getattribute__(value, name)
        except AttributeError:  # not set, or a private name
            continue
    with contextlib.suppress(AttributeError, TypeError):
        stored.update(object.__getattribute__(value, "__dict__"))
    return stored
