"""Decide for all writers whether udfdask can write to a path."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.writing.stores import foreign_entry, store_root


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A checked path that udfdask can write to."""

    named: Path
    """The absolute path, as given by the user."""
    path: Path
    """The path with symbolic links resolved: the file or folder to make or replace."""
    is_store: bool
    """Whether a zarr store is written; otherwise a file."""
    overwrite: bool
    """Whether an existing target of the same kind can be replaced."""

    def check(self) -> None:
        """Raise if something is at the target that must not be replaced."""
        if not os.path.lexists(self.path):
            return
        if not self.is_store and not self.path.is_file():
            what = "a folder" if self.path.is_dir() else "not a file"
            raise FileExistsError(f"{self.named} is {what}: choose another name")
        if not self.overwrite:
            raise FileExistsError(
                f"{self.named} already exists: choose another name, or overwrite it "
                "with overwrite=True (--overwrite for files of --out and --plot)"
            )
        if not self.is_store:
            return
        foreign = foreign_entry(self.path)
        if foreign is not None or os.path.ismount(self.path):
            what = "not a zarr group"
            if foreign is not None and foreign != self.path:
                what = f"a zarr store that also contains {foreign.name}, which is not part of it"
            raise FileExistsError(
                f"{self.named} is {what}, so it is not replaced: choose another name, or remove it "
                "yourself"
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
    named = _local_path(path, is_store=is_store)
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
        folded = [Path(str(target.path).casefold()) for target in (one, other)]
        if folded[0] in (folded[1], *folded[1].parents):
            raise ArgumentValueError(
                f"{one.named} and {other.named} cannot both be written: they are the same path, "
                "or one is inside the other. Choose different names"
            )


def _local_path(path: Any, *, is_store: bool) -> Path:
    """Return a user's path as an absolute path; raise if it is not a local path."""
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        what = "a zarr store" if is_store else "a file"
        raise ArgumentTypeError(
            f"the path of {what} must be a string or path, such as 'results', not {path!r}"
        )
    if "://" in text:
        remedy = (
            "use xarray: result.to_xarray().to_zarr(...)" if is_store else "choose a local path"
        )
        raise ArgumentValueError(f"{text} is not a local path: {remedy}")
    if not text.strip() or "\0" in text:
        raise ArgumentValueError(f"{text!r} is not a possible name: choose another one")
    return Path(text).expanduser().absolute()


def _check_sources(named: Path, target: Path, sources: Sequence[str | os.PathLike[str]]) -> None:
    """Raise if a target is a source, contains one, or is inside one."""
    for source in sources:
        root = store_root(Path(os.path.realpath(source)))
        if root == target or (root.exists() and target.exists() and root.samefile(target)):
            what = "is the source of the data"
        elif target in root.parents:
            what = "contains the source of the data"
        elif root in target.parents:
            what = "is inside the source of the data"
        else:
            continue
        raise ArgumentValueError(
            f"{named} {what}, {root}, which udfdask never changes: choose another path"
        )
