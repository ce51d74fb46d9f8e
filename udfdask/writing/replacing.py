"""Write a file or folder under another name, then put it in place."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from udfdask.errors import UDFError
from udfdask.writing.hidden import NEW, OLD, hidden_folder
from udfdask.writing.targets import Target

FULL = (errno.ENOSPC, errno.EDQUOT) if hasattr(errno, "EDQUOT") else (errno.ENOSPC,)
"""System error numbers for a full disk and an exceeded quota."""

_CHANGED = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOENT)
"""System error numbers if another writer has made or moved the target."""


@contextmanager
def replacing(target: Target) -> Iterator[Path]:
    """Yield a path to write to; if no error occurs, replace the target by it.

    At any time, the target is either the complete old version or the complete new version, but for
    the moment between two renames if an existing folder is replaced: if the process is killed
    there, the next writer puts the new version in place.

    Raises
    ------
    FileExistsError
        If something exists at the target that must not be replaced.
    OSError
        If writing fails, for example because the disk is full.
    """
    with hidden_folder(target.path) as folder:
        new = folder / NEW
        with _named_if_full(target):
            yield new
            _flush(new)
        put_in_place(new, target)


def put_in_place(new: Path, target: Target) -> None:
    """Rename a finished file or folder, which lies in a folder of its own, to its target.

    If something is there that must not be replaced, the new one is kept under another name, which
    is the attribute `results_saved` of the error: it may have taken hours to compute.
    """
    try:
        _rename(new, target)
    except (OSError, UDFError) as error:
        if new.exists() and os.path.lexists(target.path):
            _keep(new, target, error)
        raise
    flush_folder(target.path.parent)


def _rename(new: Path, target: Target) -> None:
    """Rename to a target; repeat this if another writer changes the target meanwhile."""
    old = new.with_name(OLD)
    while True:
        target.check()
        try:
            if not target.overwrite and not target.kind.is_folder:
                _link(new, target.path)
                return
            if target.overwrite and os.path.lexists(target.path):
                with contextlib.suppress(OSError):  # not all file systems have permissions
                    shutil.copymode(target.path, new)
                if target.kind.is_folder:
                    shutil.rmtree(old, ignore_errors=True)
                    target.path.rename(old)
            new.replace(target.path)
        except OSError as error:
            if error.errno not in _CHANGED or not new.exists():
                raise
        else:
            return


def _link(new: Path, path: Path) -> None:
    """Give a finished file its name; raise FileExistsError if another writer was faster."""
    try:
        os.link(new, path)
    except FileExistsError:
        raise
    except OSError:  # FAT and some network disks have no links
        new.replace(path)
    else:
        new.unlink()


def flush_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    if sys.platform != "win32":  # which cannot open folders
        _flush_one(path)


@contextmanager
def _named_if_full(target: Target) -> Iterator[None]:
    """Add the name of the target to the error if a disk is full; the system does not name it."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL or error.filename is not None:
            raise
        raise OSError(
            error.errno,
            f"{error.strerror}, while {target.kind.words} was written: free some space, or choose "
            "a path on another disk",
            str(target.named),
        ) from error


def _keep(new: Path, target: Target, error: Exception) -> None:
    """Keep results that cannot replace the target under another name."""
    name = f"{target.path.stem[:50]}-{uuid.uuid4().hex[:8]}{target.path.suffix}"
    with contextlib.suppress(OSError):
        kept = new.rename(target.path.with_name(name))
        error.results_saved = kept  # type: ignore[attr-defined]
        error.add_note(f"The results were computed and are saved in {kept}")


def _flush(path: Path) -> None:
    """Wait until a file, or all files of a folder, are on the disk.

    Otherwise a power failure after the deletion of the old file could leave an empty new file.
    """
    for folder, _, files in os.walk(path):
        for name in files:
            _flush_one(Path(folder, name))
        flush_folder(Path(folder))
    if path.is_file():
        _flush_one(path)


def _flush_one(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
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
