"""Write a file or folder under another name, then put it in place."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from udfdask.writing.targets import Target

_ABANDONED = 24 * 3600.0
"""Age in seconds after which an unfinished file or folder is a leftover of a dead run."""


def hidden_prefix(target: Path) -> str:
    """Return the prefix of the names under which a target is written.

    It is short, because the name of the target may already have the maximum length.
    """
    digest = hashlib.blake2b(os.fsencode(target.name), digest_size=6).hexdigest()
    return f".udfdask-{digest}-"


def part_path(target: Path) -> Path:
    """Return a new hidden path next to a target, and remove what dead runs have left there."""
    prefix = hidden_prefix(target)
    for left in list(target.parent.glob(f"{prefix}*.part")):
        with contextlib.suppress(OSError):
            if left.stat().st_mtime < time.time() - _ABANDONED:
                _remove(left)
    return target.with_name(f"{prefix}{uuid.uuid4().hex[:8]}.part")


@contextmanager
def replacing(target: Target) -> Iterator[Path]:
    """Yield a path to write to; if no error occurs, put what is written there in place.

    At any time, the target is either the complete old version or the complete new one. Only when an
    existing store is replaced, there is a moment in which the old one has the suffix ``.old-``.
    """
    part = part_path(target.path)
    try:
        yield part
        put_in_place(part, target)
    finally:
        _remove(part)


def put_in_place(part: Path, target: Target) -> None:
    """Rename a finished file or folder to its target, when it is on the disk.

    If something is there by now that must not be replaced, what was written gets another name: it
    may have taken hours to compute.
    """
    flush(part)
    try:
        target.check()
    except FileExistsError as error:
        name = f"{target.path.stem[:50]}-{uuid.uuid4().hex[:8]}{target.path.suffix}"
        kept = part.rename(target.path.with_name(name))
        error.add_note(f"What was written is kept: {kept}")
        raise
    if target.is_store and target.path.exists():
        old = target.path.with_name(f"{target.path.name[:200]}.old-{uuid.uuid4().hex[:8]}")
        target.path.rename(old)
        try:
            part.rename(target.path)
        except OSError:
            old.rename(target.path)
            raise
        _remove(old)
    else:
        part.replace(target.path)
    flush(target.path.parent, deep=False)


def flush(path: Path, *, deep: bool = True) -> None:
    """Wait until a file, or the names in a folder and with `deep` all in it, are on the disk."""
    if path.is_dir():
        for entry in path.iterdir() if deep else ():
            flush(entry)
        if sys.platform == "win32":  # which cannot open folders
            return
    # Windows flushes only files that are open for writing
    opened = os.open(path, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
    try:
        os.fsync(opened)
    except OSError as error:
        # some network file systems cannot flush folders
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS) or not path.is_dir():
            raise
    finally:
        os.close(opened)


def _remove(path: Path) -> None:
    """Remove a file or folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
