"""Hidden folders next to a target, in which its successor is written.

The folder of a living writer is locked; the kernel releases the lock when the process ends, however
it ends. So the next writer to the same target can tell what dead ones have left, and remove it.
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
except ImportError:  # Windows: what dead writers have left stays
    fcntl = None  # type: ignore[assignment]

NEW, OLD = "new", "old"
"""In the folder: what is being written, and what the target was until a moment ago."""

PART = ".part"
"""Suffix of a hidden file that the tasks of a run write together."""

ABANDONED = 24 * 3600.0
"""Seconds after which such a file counts as left by a dead run."""

_LOCK = "lock"


@contextmanager
def scratch_for(target: Path) -> Iterator[Path]:
    """Make a locked folder next to a target; remove it with all that is left in it."""
    folder, lock = _make(target)
    try:
        yield folder
    finally:
        _give_up(folder, target, lock)


def clean_up(target: Path) -> None:
    """Remove what dead writers to a target have left; finish a swap that one was killed in."""
    for part in _entries(target):
        # tasks of a cluster share it, and none of them could hold a lock for all of the run
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
    """Return a new name next to a target for a file that the tasks of a run write together."""
    return target.with_name(f"{scratch_prefix(target)}{uuid.uuid4().hex[:8]}{PART}")


def scratch_prefix(target: Path) -> str:
    """Return how the names of hidden files of writers to a target begin.

    They have one short length, since the target's own name may be as long as names can be.
    """
    digest = hashlib.blake2b(os.fsencode(target.name), digest_size=6).hexdigest()
    return f".udfdask-{digest}-"


def _make(target: Path) -> tuple[Path, int]:
    """Make a folder; return it and its lock, an open file."""
    while True:
        folder = target.with_name(f"{scratch_prefix(target)}{uuid.uuid4().hex[:8]}")
        folder.mkdir()
        try:
            lock = os.open(folder / _LOCK, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        except FileNotFoundError:
            continue  # another writer took it for a dead one's
        except OSError:
            folder.rmdir()
            raise
        if fcntl is not None:
            # some file systems have no locks: what dead writers leave there, stays
            with contextlib.suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX)
        if os.fstat(lock).st_nlink:
            return folder, lock
        os.close(lock)


def _entries(target: Path) -> list[Path]:
    """Return all hidden files and folders of writers to a target."""
    prefix = scratch_prefix(target)
    with os.scandir(target.parent) as entries:
        return [Path(entry.path) for entry in entries if entry.name.startswith(prefix)]


def _lock_of_dead(folder: Path) -> int | None:
    """Return the lock of a dead writer's folder; None if it lives, or has left nothing."""
    if fcntl is None:
        return None
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR)
    except OSError:
        with contextlib.suppress(OSError):
            folder.rmdir()  # it died before it wrote anything
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _finish_swap(folder: Path, target: Path) -> None:
    """Give a target back its name if its writer was stopped while it replaced it in two steps."""
    if (folder / OLD).exists() and not os.path.lexists(target):
        # once there is an old one, the new one is complete
        left = folder / NEW if (folder / NEW).exists() else folder / OLD
        with contextlib.suppress(FileExistsError):
            rename_to_free(left, target)


def _remove(folder: Path) -> None:
    """Remove a folder, its lock last: if this is cut short, the next writer can do the rest."""
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
