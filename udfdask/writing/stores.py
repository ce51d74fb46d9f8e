"""Recognize folders that contain a zarr store, and check which values a store can contain."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError

METADATA = ("zarr.json", ".zarray", ".zgroup")

_OWN = {3: {"zarr.json"}, 2: {".zarray", ".zgroup", ".zattrs", ".zmetadata"}}
"""Names of metadata files for each zarr format."""

# zarr first writes each file under a temporary name of this form
_UNFINISHED = re.compile(r".*\.[0-9a-f]{32}\.partial")


def is_zarr(path: Path) -> bool:
    """Return whether a path is a folder with a zarr array or group."""
    return path.is_dir() and any((path / name).is_file() for name in METADATA)


def store_root(path: Path) -> Path:
    """Return the outermost zarr group that contains a path, otherwise the path itself."""
    inside = path.parent if path.name in METADATA else path
    if not is_zarr(inside):
        return path
    while is_zarr(inside.parent) and inside.parent != inside:
        inside = inside.parent
    return inside


def foreign_entry(folder: Path) -> Path | None:
    """Return an entry of a folder that is not part of a zarr store; None if there is none."""
    node = _read_node(folder)
    if node is None:
        return folder
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        if entry.name in _OWN[node.zarr_format] and entry.is_file(follow_symlinks=False):
            continue
        inner = node.foreign(entry, "")
        if inner is not None:
            return inner
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Node:
    """The metadata of a folder that is a zarr array or group."""

    zarr_format: int
    """2 or 3."""
    ndim: int | None
    """Dimensions of an array; None for a group."""

    def foreign(self, entry: os.DirEntry[str], above: str) -> Path | None:
        """Return the path of an entry, or of something in it, that is not part of the node.

        `above` are the folders between the node and the entry.
        """
        where = Path(entry.path)
        is_folder = entry.is_dir(follow_symlinks=False)
        if self.ndim is None:
            return foreign_entry(where) if is_folder else self._unless_unfinished(entry)
        name = f"{above}{entry.name}"
        if not is_folder:
            return None if self._is_chunk(name) else self._unless_unfinished(entry)
        if not self._may_hold_chunks(name):
            return where
        with os.scandir(where) as entries:
            for inner in list(entries):
                found = self.foreign(inner, f"{name}/")
                if found is not None:
                    return found
        return None

    def _is_chunk(self, name: str) -> bool:
        """Return whether a name is that of a chunk: ``c/3/0``, ``c.3.0``, ``3/0``, ``3.0``."""
        prefix, *numbers = re.split(r"[./]", name)
        if prefix != "c":
            numbers = [prefix, *numbers]
        # an array without dimensions has one chunk, called c or 0
        expected = self.ndim or int(prefix != "c")
        return len(numbers) == expected and all(re.fullmatch("[0-9]+", n) for n in numbers)

    def _may_hold_chunks(self, name: str) -> bool:
        """Return whether a folder of this name within the array can contain chunks."""
        first, *numbers = name.split("/")
        numbers = numbers if first == "c" else [first, *numbers]
        return len(numbers) < (self.ndim or 0) and all(re.fullmatch("[0-9]+", n) for n in numbers)

    def _unless_unfinished(self, entry: os.DirEntry[str]) -> Path | None:
        """Return the path of a file; None for a temporary file that zarr did not finish."""
        is_file = entry.is_file(follow_symlinks=False)
        return None if is_file and _UNFINISHED.fullmatch(entry.name) else Path(entry.path)


def _read_node(folder: Path) -> _Node | None:
    """Return the metadata of a folder; None if they are missing or invalid."""
    for name in METADATA:
        try:
            metadata = json.loads((folder / name).read_bytes())
            zarr_format = int(metadata["zarr_format"])
            is_array = name == ".zarray" or metadata.get("node_type") == "array"
            if zarr_format == (3 if name == "zarr.json" else 2):
                ndim = len(metadata["shape"]) if is_array else None
                return _Node(zarr_format=zarr_format, ndim=ndim)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            continue
    return None


def check_storable(name: str, dtype: np.dtype[Any]) -> None:
    """Raise if a store cannot contain a variable of this dtype."""
    if dtype.kind not in "biufcmM":
        raise ArgumentTypeError(
            f"result {name!r} has the dtype {dtype}, which cannot be written to zarr: only "
            "booleans, numbers and times can. Leave this UDF out, or save its result yourself"
        )
