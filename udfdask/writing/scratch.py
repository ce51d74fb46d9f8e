"""Manage hidden folders next to a target, in which its new version is written.

Each writer locks its folder. The kernel releases the lock when the process ends for any reason. So
the next writer to the same target can recognize and remove the folders of dead writers.
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

from udfdask.writing.renaming import rename_to_free

try:
    import fcntl
except ImportError:  # Windows: folders of dead writers are not removed
    fcntl = None  # type: ignore[assignment]

NEW, OLD = "new", "old"
"""Names in the folder: the new version, and the old version during a replacement."""

PART = ".part"
"""Suffix of a hidden file that all tasks of a run write to."""

ABANDONED = 24 * 3600.0
"""Age in seconds after which such a file is treated as a leftover of a dead run."""

_LOCK = "lock"


@contextmanager
def scratch_for(target: Path) -> Iterator[Path]:
    """Make a locked folder next to a target; finally remove it with its contents."""
    folder, lock = _make(target)
    try:
        yield folder
    finally:
        _give_up(folder, target, lock)


def clean_up(target: Path) -> None:
    """Remove leftovers of dead writers to a target; finish a swap that was interrupted."""
    for part in _entries(target):
        # several tasks of a cluster write to it, so no process can hold a lock for the whole run
        with contextlib.suppress(OSError):
            if part.suffix == PART and part.stat().st_mtime < time.time() - ABANDONED:
                part.unlink()
    for folder in _entries(target):
        lock = _lock_of_dead(folder) if folder.is_dir() and not folder.is_symlink() else None
        if lock is None:
            continue
        _give_up(folder, target, lock)


def _give_up(folder: Path, target: Path, lock: int) -> None:
    """Remove a folder and its lock, unless the only copy of the target is in it."""
    try:
        _finish_swap(folder, target)
        _remove(folder)
    finally:
        os.close(lock)


def part_path(target: Path) -> Path:
    """Return a new hidden path next to a target for a file that all tasks of a run write to."""
    return target.with_name(f"{scratch_prefix(target)}{uuid.uuid4().hex[:8]}{PART}")


def scratch_prefix(target: Path) -> str:
    """Return the prefix of the names of hidden files and folders of writers to a target.

    It is short, because the name of the target may already have the maximum length.
    """
    digest = hashlib.blake2b(os.fsencode(target.name), digest_size=6).hexdigest()
    return f".udfdask-{digest}-"


def _make(target: Path) -> tuple[Path, int]:
    """Make a folder; return it and its lock, an open file."""
    while True:
        folder = target.with_name(f"{scratch_prefix(target)}{uuid.uuid4().hex[:8]}")
        folder.mkdir()
        try:
            lock = _new_lock(folder)
        except (FileNotFoundError, FileExistsError):
            continue  # another writer took it for a leftover
        except OSError:
            folder.rmdir()
            raise
        if fcntl is not None:
            # on file systems without locks, leftovers of dead writers are not removed
            with contextlib.suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX)
        if os.fstat(lock).st_nlink:
            return folder, lock
        os.close(lock)


def _new_lock(folder: Path) -> int:
    """Make the lock file of a folder, and open it."""
    return os.open(folder / _LOCK, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)


def _entries(target: Path) -> list[Path]:
    """Return all hidden files and folders of writers to a target."""
    prefix = scratch_prefix(target)
    with os.scandir(target.parent) as entries:
        return [Path(entry.path) for entry in entries if entry.name.startswith(prefix)]


def _lock_of_dead(folder: Path) -> int | None:
    """Return the lock of a dead writer's folder; None if the writer is alive."""
    if fcntl is None:
        return None
    try:
        try:
            lock = os.open(folder / _LOCK, os.O_RDWR)
        except FileNotFoundError:
            # The writer died before it made the lock, or a task of a run that failed wrote once
            # more after the folder had been removed. If the writer is about to make its lock, it
            # finds this one, and makes another folder.
            lock = _new_lock(folder)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _finish_swap(folder: Path, target: Path) -> None:
    """Restore a target whose writer was stopped between the two steps of a replacement."""
    if (folder / OLD).exists() and not os.path.lexists(target):
        # if the old version is in the folder, the new version is complete
        left = folder / NEW if (folder / NEW).exists() else folder / OLD
        with contextlib.suppress(FileExistsError):
            rename_to_free(left, target)


def _remove(folder: Path) -> None:
    """Remove a folder, its lock last, so that the next writer can finish an interrupted removal."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in list(entries):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            elif entry.name != _LOCK:
                Path(entry.path).unlink()
    with contextlib.suppress(OSError):
        if list(folder.iterdir()) == [folder / _LOCK]:
            (folder / _LOCK).unlink()
            folder.rmdir()
