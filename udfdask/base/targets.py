"""Decide for all writers whether udfdask can write to a path, which may be a zarr store."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from udfdask.errors import ArgumentTypeError, ArgumentValueError

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The user's absolute path `named`, and the file or store `path` behind symbolic links."""

    named: Path
    path: Path
    is_store: bool
    overwrite: bool

    def check(self) -> None:
        """Raise if something is at the target that must not be replaced."""
        if not os.path.lexists(self.path):
            return
        if not self.is_store and not self.path.is_file():
            raise FileExistsError(f"{self.named} is a folder: choose another name")
        if not self.overwrite:
            raise FileExistsError(
                f"{self.named} already exists: choose another name, or overwrite it "
                "with overwrite=True (--overwrite for files of --out and --plot)"
            )
        foreign = foreign_entry(self.path) if self.is_store else None
        if foreign is not None or os.path.ismount(self.path):
            raise FileExistsError(
                f"{self.named} contains more than a zarr group ({foreign}), so it is not replaced: "
                "choose another name, or remove it yourself"
            )


def check_target(
    path: str | os.PathLike[str],
    *,
    is_store: bool = False,
    overwrite: bool = False,
    sources: Sequence[str | os.PathLike[str]] = (),
) -> Target:
    """Return the checked target for a file or store; raise if udfdask must not write there.

    An existing target is only replaced with `overwrite`, and a folder only if it is a zarr group
    that contains nothing else. A file or store in `sources` is never replaced, and neither is
    anything that contains it or is inside it.
    """
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        raise ArgumentTypeError(f"a path must be a string or path, such as 'results', not {path!r}")
    if "://" in text:
        raise ArgumentValueError(f"{text} is not a local path: choose one, or write with xarray")
    if not text.strip() or "\0" in text:
        raise ArgumentValueError(f"{text!r} is not a possible name: choose another one")
    named = Path(text).expanduser().absolute()
    real = Path(os.path.realpath(named))
    _check_sources(named, real, sources)
    folder = real.parent
    if not folder.is_dir():
        kind = NotADirectoryError if folder.exists() else FileNotFoundError
        raise kind(f"there is no folder {folder} to write {named.name} into: create it first")
    target = Target(named=named, path=real, is_store=is_store, overwrite=overwrite)
    target.check()
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"{named} cannot be written: choose a folder that you can write to")
    return target


def check_apart(targets: Sequence[Target]) -> None:
    """Raise if two of several targets are the same, or one is inside another."""
    for one, other in itertools.permutations(targets, 2):
        # compare in lower case: some file systems do not distinguish upper and lower case
        inner, outer = (Path(str(target.path).casefold()) for target in (one, other))
        if inner.is_relative_to(outer):
            raise ArgumentValueError(
                f"{one.named} and {other.named} cannot both be written: they are the same path, "
                "or one is inside the other"
            )


def _check_sources(named: Path, target: Path, sources: Sequence[str | os.PathLike[str]]) -> None:
    """Raise if a target is a source, contains one, or is inside one."""
    for source in sources:
        root = store_root(Path(os.path.realpath(source)))
        # another name of the same file can be a hard link
        same = root.exists() and target.exists() and root.samefile(target)
        if same or target.is_relative_to(root) or root.is_relative_to(target):
            raise ArgumentValueError(
                f"{named} is the source of the data, {root}, or contains it or is inside it, and "
                "udfdask never changes it: choose another path"
            )
