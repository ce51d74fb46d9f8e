"""Recognize folders that contain a zarr store."""

from __future__ import annotations

import json
from pathlib import Path

METADATA = ("zarr.json", ".zarray", ".zgroup")


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
    """Return an entry of a folder, or itself, that is no part of a zarr group; None if all is."""
    try:
        metadata = json.loads((folder / "zarr.json").read_bytes())
        is_group = metadata.get("node_type") == "group"
    except (OSError, ValueError, AttributeError):
        is_group = False
    if not (is_group or (folder / ".zgroup").is_file()):
        return folder
    own = {"zarr.json", ".zgroup", ".zattrs", ".zmetadata"}
    entries = (entry for entry in sorted(folder.iterdir()) if entry.name not in own)
    return next((entry for entry in entries if entry.is_symlink() or not is_zarr(entry)), None)
