"""Name the data of dask collections so that the name is the same in every process.

dask's names of layers and tasks can contain random parts, and do not depend on the user's code.
Here a task is named by its function, its arguments and the names of the tasks that it reads. A
blockwise layer is named as a whole, at the same cost for any number of blocks.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from dask.core import flatten

from udfdask.base.names.naming import Reference, UnnamedError, Walk, describe_value, strict_token
from udfdask.base.names.origins import settings_of
from udfdask.base.targets import store_root
from udfdask.graph.dask_internals.tasks import described_layer, described_task, listed_tasks
from udfdask.graph.inputs import named_file
from udfdask.graph.run_layers import PackedRecipe
from udfdask.plan.groups import Group
from udfdask.plan.recipe import Recipe

FileStatus = tuple[str, str]
"""Real path, and a hash of sizes and times."""

_Node = tuple[str, Any]
"""A blockwise layer or a list of tasks ("layer", name), or a task ("task", key)."""


class DataNames:
    """Names of the data of collections, and of values that contain collections."""

    def __init__(self) -> None:
        self._objects: dict[int, tuple[Any, str, set[Reference]]] = {}
        self._paths: dict[str, Path | None] = {}
        self._noted: set[Reference] = set()
        self._statuses: dict[Path, FileStatus] = {}

    def name(self, collection: Any) -> str:
        """Return the name of the data of a collection; raise an UnnamedError if it has none."""
        shown = [str(getattr(collection, name, "")) for name in ("shape", "dtype", "chunks")]
        graph = collection.__dask_graph__()
        names = _TaskNames(getattr(graph, "layers", {"": graph}), self)
        layer = getattr(collection, "name", None)
        return strict_token(("data", shown, names.of(layer, collection.__dask_keys__())))

    def of_value(self, value: Any) -> str:
        """Return the name of any value, which may contain collections."""
        return self.strict(value, self._describe_inside)

    def strict(self, value: Any, describe: Callable[[Walk, Any], Any]) -> str:
        """Return the name of a value, and note what it refers to."""
        return strict_token(value, describe, self._noted)

    def with_outside(self, make: Callable[[], str]) -> str:
        """Return the name that `make` makes; it also depends on the files and settings in it."""
        name, noted = self._noting(make)
        texts = {text for kind, text in noted if kind == "text"}
        paths = {path for text in texts if (path := self._file_of(text)) is not None}
        files = [(str(path), self.status(path)) for path in sorted(paths)]
        return strict_token((name, files, settings_of(noted)))

    def _noting(self, make: Callable[[], str]) -> tuple[str, set[Reference]]:
        """Return a name, and the references that are noted while it is made."""
        before, self._noted = self._noted, set()
        try:
            return make(), self._noted
        finally:
            self._noted = before | self._noted

    def status(self, path: Path) -> FileStatus:
        """Return the status of a file, or of all files in a folder, asked for once."""
        if path not in self._statuses:
            self._statuses[path] = _status_of(path)
        return self._statuses[path]

    def _file_of(self, text: str) -> Path | None:
        """Return the file or zarr store that a text names."""
        if text not in self._paths:
            path = named_file(os.path.expanduser(text))  # noqa: PTH111  # most texts are no paths
            self._paths[text] = None if path is None else store_root(path)
        return self._paths[text]

    def describe(self, walk: Walk, value: Any) -> Any:
        """Name an argument of a task; each object is named once, though many tasks have it."""
        if isinstance(value, (list, tuple, dict, set, frozenset)):
            return describe_value(walk, value)
        if id(value) not in self._objects:
            name, noted = self._noting(lambda: self.of_value(value))
            self._objects[id(value)] = (value, name, noted)
        _, name, noted = self._objects[id(value)]
        self._noted |= noted
        return ("object", name)

    def _describe_inside(self, walk: Walk, value: Any) -> Any:
        """Name a value that may contain collections, mapped arrays or identities of files."""
        kind = type(value)
        if isinstance(value, np.ndarray):
            mapped = _mapped(value)
            if mapped is None:
                return describe_value(walk, value)
            return ("mapped", *mapped, self.status(Path(mapped[0])))
        if kind.__module__.startswith("udfdask.") and hasattr(kind, "lasting_identity"):
            identity = value.lasting_identity()
            if identity is None:
                raise UnnamedError(f"the version of {value.location.shown}")
            return ("file", *identity)
        if kind.__module__.partition(".")[0] == "distributed":
            raise UnnamedError(value)  # such as a future, whose name does not tell its value
        if isinstance(value, PackedRecipe):
            value = value.now
        if isinstance(value, Recipe):  # the token of a run depends on names that dask gives
            return describe_value(walk, replace(value, token=""))
        if isinstance(value, Group):
            return describe_value(walk, replace(value, parameter_layers=()))
        if hasattr(kind, "__dask_graph__") and not isinstance(value, type):
            return ("collection", self.name(value))
        return describe_value(walk, value)


class _TaskNames:
    """Names of the tasks of one graph; `names` names the objects that they hold."""

    def __init__(self, layers: Mapping[str, Any], names: DataNames) -> None:
        self._of_objects = names
        described = {name: described_layer(layer) for name, layer in layers.items()}
        self._blockwise = {name: each for name, each in described.items() if each is not None}
        self._tasks = listed_tasks(layers.values())
        self._keys: dict[Any, list[Any]] = {}
        for key in self._tasks:
            self._keys.setdefault(_prefix(key), []).append(key)
        self._names: dict[_Node, str] = {}

    def of(self, layer: Any, keys: Any) -> Any:
        """Return the name of a layer; if there is none, the names of nested lists of keys."""
        if layer in self._blockwise or layer in self._keys:
            return self._name_of(("layer", layer))
        return [self._name_of(("task", key)) for key in flatten([keys])]

    def _name_of(self, node: _Node) -> str:
        """Return the name of a layer or task, after those of all that it reads."""
        # not by recursion: a cumulative sum has a chain of one task per block
        stack = [node]
        while stack:
            missing = [each for each in self._needs(stack[-1]) if each not in self._names]
            if missing and stack[-1] not in self._names:
                stack.extend(missing)
                continue
            current = stack.pop()
            if current not in self._names:
                self._names[current] = self._computed_name(*current)
        return self._names[node]

    def _needs(self, node: _Node) -> list[_Node]:
        """Return the layers and tasks that a node reads."""
        kind, name = node
        if kind == "task":
            keys = self._tasks[name].dependencies if name in self._tasks else ()
            return [self._node_of(key) for key in keys]
        if name not in self._blockwise:
            return [("task", key) for key in self._keys.get(name, ())]
        return [
            ("layer", given) if what == "layer" else self._node_of(given)
            for what, given in self._blockwise[name].inputs
            if what != "value"
        ]

    def _node_of(self, key: Any) -> _Node:
        """Return the blockwise layer that makes a key, otherwise its task."""
        return ("layer", _prefix(key)) if _prefix(key) in self._blockwise else ("task", key)

    def _computed_name(self, kind: str, name: Any) -> str:
        """Return the name of a layer or task whose inputs have names."""
        parts: Any
        if kind == "task":
            if name not in self._tasks:  # after `persist` on a cluster
                raise UnnamedError(f"the value of {name!r}, which only a cluster has")
            parts = self._tasks[name]
        elif name in self._blockwise:
            layer = self._blockwise[name]
            inputs: list[Any] = []
            for what, given in layer.inputs:
                if what == "value":
                    inputs.append(("value", given))
                elif what == "layer":
                    inputs.append(self._names["layer", given])
                else:
                    inputs.append(self._reference(given))
            parts = (layer.task, inputs, layer.rest)
        else:
            keys = sorted(self._keys.get(name, ()), key=_order)
            parts = [(_index(key), self._names["task", key]) for key in keys]
        return self._of_objects.strict((kind, parts), self._describe)

    def _reference(self, key: Any) -> Any:
        """Return the name of a key in an argument."""
        node = self._node_of(key)
        if node[0] == "layer":
            return ("block", self._names.get(node), _index(key))
        # inputs of a blockwise layer are known by their place
        return ("task", self._names[node]) if node in self._names else ("place", key)

    def _describe(self, walk: Walk, value: Any) -> Any:
        """Name a part of a task."""
        part = described_task(value)
        if part is None:
            return self._of_objects.describe(walk, value)
        if part[0] == "key":
            return self._reference(part[1])
        return (type(value).__name__, [walk.name(each) for each in part[1:]])


def _mapped(array: Any) -> tuple[Any, ...] | None:
    """Name an array that is mapped from a file by its place there; None for all other arrays."""
    base: Any = array
    found = None
    while isinstance(base, np.ndarray):
        if isinstance(base, np.memmap) and base.filename is not None:
            found = base
        base = base.base
    if found is None or found.mode != "r":  # its values can be changed in memory
        return None
    start = array.__array_interface__["data"][0] - found.__array_interface__["data"][0]
    place = int(found.offset) + start
    return (str(found.filename), place, array.shape, array.strides, array.dtype.str)


def _prefix(key: Any) -> Any:
    """Return the part of a key that is the name of its layer."""
    return key[0] if isinstance(key, tuple) and key else key


def _index(key: Any) -> Any:
    """Return the part of a key that is not the name of its layer."""
    return key[1:] if isinstance(key, tuple) else ()


def _order(key: Any) -> Any:
    """Return a value to sort keys of one layer by."""
    return [(isinstance(i, str), str(i) if isinstance(i, str) else i) for i in _index(key)]


def _status_of(path: Path) -> FileStatus:
    """Return what tells whether a file, or a folder of many, is what it was, without reading it."""
    found = []  # all files: an older chunk of equal size changes no sum, and no latest time
    for file in _files_in(path) if path.is_dir() else [str(path)]:
        status = os.stat(file)  # noqa: PTH116  # many in a zarr store
        found.append((file, status.st_size, status.st_mtime_ns))
    digest = hashlib.blake2b(repr(sorted(found)).encode(), digest_size=16).hexdigest()
    return os.path.realpath(path), digest  # a link can be set to another file


def _files_in(folder: Path) -> Iterator[str]:
    """Yield the paths of all files in a folder and its folders, also through symbolic links."""
    seen = set()
    for place, folders, files in os.walk(folder, followlinks=True):
        seen.add(os.path.realpath(place))
        # a link to a folder above would be followed forever
        folders[:] = [n for n in folders if os.path.realpath(f"{place}/{n}") not in seen]
        yield from (f"{place}{os.sep}{name}" for name in files)
