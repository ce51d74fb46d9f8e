"""Recognize folders that contain a zarr store."""

from __future__ import annotations

import json
from pathlib import Path

METADATA = ("zarr.json", ".zarray", ".zgroup")

_OF_GROUPS = {"zarr.json", ".zgroup", ".zattrs", ".zmetadata"}
"""Names of the files in a zarr group."""


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


def _is_group(folder: Path) -> bool:
    """Return whether a folder is a zarr group, and not an array."""
    if (folder / ".zgroup").is_file():
        return True
    try:
        metadata = json.loads((folder / "zarr.json").read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(metadata, dict) and metadata.get("node_type") == "group"


def foreign_entry(folder: Path) -> Path | None:
    """Return an entry of a zarr group that is not part of it; None if there is none.

    A folder that is no group, such as an array of recorded frames, is foreign itself.
    """
    if not _is_group(folder):
        return folder
    entries = (entry for entry in sorted(folder.iterdir()) if entry.name not in _OF_GROUPS)
    return next((entry for entry in entries if entry.is_symlink() or not is_zarr(entry)), None)
