"""Write a file or folder under another name, then put it in place."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from udfdask.base.targets import Target


def hidden_prefix(target: Path) -> str:
    """Return the prefix of the names under which a target is written, short for long names."""
    digest = hashlib.blake2b(os.fsencode(target.name), digest_size=6).hexdigest()
    return f".udfdask-{digest}-"


def part_path(target: Path) -> Path:
    """Return a new hidden path next to a target; remove what runs left there a day ago."""
    prefix = hidden_prefix(target)
    for left in list(target.parent.glob(f"{prefix}*.part")):
        with contextlib.suppress(OSError):
            # the time of a folder is not that of chunks that are written in folders inside
            latest = max(each.stat().st_mtime for each in (left, *left.rglob("*")))
            if latest < time.time() - 24 * 3600:
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
    """Rename a finished file or folder to its target, or keep it if that is taken by now."""
    flush(part)
    path, number = target.path, uuid.uuid4().hex[:8]
    try:
        target.check()
    except FileExistsError as error:
        kept = part.rename(path.with_name(f"{path.stem[:50]}-{number}{path.suffix}"))
        error.add_note(f"What was written is kept: {kept}")
        raise
    if target.is_store and path.exists():
        old = path.rename(path.with_name(f"{path.name[:200]}.old-{number}"))
        try:
            part.rename(path)
        except OSError:
            old.rename(path)
            raise
        _remove(old)
    else:
        part.replace(path)
    flush(path.parent, deep=False)


def flush(path: Path, *, deep: bool = True) -> None:
    """Wait until a file, or the names in a folder and with `deep` all in it, are on the disk."""
    if path.is_file():
        with path.open("r+b") as stream:
            os.fsync(stream.fileno())
        return
    for entry in path.iterdir() if deep else ():
        flush(entry)
    if sys.platform != "win32":  # which cannot open folders
        opened = os.open(path, os.O_RDONLY)
        with contextlib.suppress(OSError):  # some network file systems cannot flush folders
            os.fsync(opened)
        os.close(opened)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
