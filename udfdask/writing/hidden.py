"""Hidden files and folders next to a target, in which its new version is written.

A writer locks its folder. The kernel releases the lock when the process ends for any reason, so the
next writer to the same target removes what is left.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: folders of dead writers are not removed
    fcntl = None  # type: ignore[assignment]

PART = ".part"
"""Suffix of a hidden file that all tasks of a run write to."""

ABANDONED = 24 * 3600.0
"""Age in seconds after which such a file is treated as a leftover of a dead run."""

NEW, OLD = "new", "old"
"""Names in the folder of a writer: the new version, and the old one during a replacement."""


def hidden_prefix(target: Path) -> str:
    """Return the prefix of the names of hidden files and folders of writers to a target.

    It is short, because the name of the target may already have the maximum length.
    """
    digest = hashlib.blake2b(os.fsencode(target.name), digest_size=6).hexdigest()
    return f".udfdask-{digest}-"


def part_path(target: Path) -> Path:
    """Return a new hidden path next to a target for a file that all tasks of a run write to."""
    return target.with_name(f"{hidden_prefix(target)}{uuid.uuid4().hex[:8]}{PART}")


def clean_up(target: Path) -> None:
    """Remove leftovers of dead writers to a target; put a version in place that one has left."""
    prefix = hidden_prefix(target)
    for path in list(target.parent.glob(f"{prefix}*")):
        if path.suffix == PART:
            # several tasks of a cluster write to it, so no process can hold a lock for a run
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < time.time() - ABANDONED:
                    path.unlink()
        elif (lock := _lock(path)) is not None:
            _give_up(path, target, lock)


@contextmanager
def hidden_folder(target: Path) -> Iterator[Path]:
    """Make a locked folder next to a target; finally remove it with its contents."""
    while True:
        folder = target.with_name(f"{hidden_prefix(target)}{uuid.uuid4().hex[:8]}")
        folder.mkdir()
        lock = _lock(folder, wait=True)
        if folder.exists():
            break
        if lock is not None:  # another writer took it for a leftover
            os.close(lock)
    try:
        yield folder
    finally:
        _give_up(folder, target, lock)


def _lock(folder: Path, *, wait: bool = False) -> int | None:
    """Lock a folder and return the open folder; None if it is locked, gone, or cannot be."""
    if fcntl is None:
        return None
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(opened)
        return None
    return opened


def _give_up(folder: Path, target: Path, lock: int | None) -> None:
    """Remove the folder of a writer, unless the only copy of the target is in it."""
    try:
        if (folder / OLD).exists() and not os.path.lexists(target):
            # the old version is moved there when the new one is complete
            left = folder / NEW if (folder / NEW).exists() else folder / OLD
            left.rename(target)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        if lock is not None:
            os.close(lock)
