"""Write a file or folder under another name, then put it in place in one step."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from udfdask.errors import UDFError
from udfdask.writing.renaming import exchange, flush, flush_folder, rename_to_free
from udfdask.writing.scratch import NEW, OLD, scratch_for
from udfdask.writing.targets import Target

FULL = (errno.ENOSPC, errno.EDQUOT) if hasattr(errno, "EDQUOT") else (errno.ENOSPC,)
"""System error numbers for a full disk and an exceeded quota."""

KEPT = "The results were computed and are saved in"
"""Beginning of the note with the other path of results that could not be written to a target."""


@contextmanager
def replacing(target: Target) -> Iterator[Path]:
    """Yield a path to write to; if no error occurs, replace the target by it.

    At any time, the target is either the complete old version or the complete new version. A file
    is replaced by `os.replace`, a folder by swapping names if the system supports this (Linux and
    macOS, on most local disks). Otherwise a folder is renamed twice. If the process is killed
    between these two steps, the target is missing until the next writer to it puts the new version
    in place.

    Raises
    ------
    FileExistsError
        If something exists at the target that must not be replaced.
    OSError
        If writing fails, for example because the disk is full.
    """
    with scratch_for(target.path) as scratch:
        new = scratch / NEW
        with _named_if_full(target):
            yield new
            flush(new)
        put_in_place(new, target, scratch / OLD)


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


def put_in_place(new: Path, target: Target, old: Path) -> None:
    """Rename a finished file or folder to its target.

    `old` is an unused path next to it, for a folder that is replaced.
    """
    try:
        target.check()  # another process may have written there since the first check
        while not _rename(new, target, old):
            target.check()  # another writer was faster: check whether its result can be replaced
    except (OSError, UDFError) as error:
        if not os.path.lexists(old):  # if it exists, the scratch folder restores the target
            _keep(new, target, error)
        raise
    flush_folder(target.path.parent)


def _rename(new: Path, target: Target, old: Path) -> bool:
    """Rename to the target; return False if the target appeared or disappeared meanwhile."""
    try:
        if not os.path.lexists(target.path):
            rename_to_free(new, target.path)
            return True
        with contextlib.suppress(OSError):  # not all file systems have permissions
            shutil.copymode(target.path, new)
        if not target.kind.is_folder:
            new.replace(target.path)
        elif not exchange(new, target.path):
            _rename_twice(new, target.path, old)
    except (FileExistsError, FileNotFoundError):
        if not os.path.lexists(new):
            raise  # the whole scratch folder is gone
        return False
    return True


def _rename_twice(new: Path, target: Path, old: Path) -> None:
    """Replace a folder on a file system that cannot swap two folders in one step.

    If this is interrupted between the steps, the cleanup of the scratch folder renames one of the
    two folders to the target.
    """
    target.rename(old)
    try:
        rename_to_free(new, target)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
            old.rename(old.with_name(uuid.uuid4().hex))  # another writer created a newer target
            raise FileExistsError(*error.args) from error
        raise


def _keep(new: Path, target: Target, error: Exception) -> None:
    """Save results that cannot replace the target under another name, and add it to the error.

    The results may have taken hours to compute.
    """
    name = f"{target.path.stem[:50]}-{uuid.uuid4().hex[:8]}{target.path.suffix}"
    kept = target.path.with_name(name)
    with contextlib.suppress(OSError):
        rename_to_free(new, kept)
        error.add_note(f"{KEPT} {kept}")
