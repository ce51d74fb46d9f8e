"""A file or folder that is written under another name and then takes its place in one step."""

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
"""What the system says if a disk, or the user's share of it, is full."""


@contextmanager
def replacing(target: Target) -> Iterator[Path]:
    """Give a path to write to; when all went well, put what is there in place of the target.

    Whoever looks at the target sees what was there before, or all of the new: a file is replaced
    by `os.replace`, a folder by swapping names where the system can (Linux and macOS, on most
    local disks). Elsewhere a folder is renamed twice, and a process that is killed in between
    leaves the target absent until the next writer to it has put the new one there.
    """
    with scratch_for(target.path) as scratch:
        new = scratch / NEW
        with _named_if_full(target):
            yield new
            flush(new)
        put_in_place(new, target, scratch / OLD)


@contextmanager
def _named_if_full(target: Target) -> Iterator[None]:
    """Say what was being written, if a disk is full: the system does not say which."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL or error.filename is not None:
            raise
        raise OSError(
            error.errno,
            f"{error.strerror}, while {target.kind.words} was written: make room, or choose a "
            "place on another disk",
            str(target.named),
        ) from error


def put_in_place(new: Path, target: Target, old: Path) -> None:
    """Take a finished file or folder next to its target; give it the target's name.

    `old` is a free path next to it, for a folder that is replaced.
    """
    try:
        target.check()  # somebody may have written there since the first look
        while not _rename(new, target, old):
            target.check()  # another writer was quicker: may that one be replaced?
    except (OSError, UDFError) as error:
        if not os.path.lexists(old):  # or the scratch folder gives one of the two the name
            _keep(new, target, error)
        raise
    flush_folder(target.path.parent)


def _rename(new: Path, target: Target, old: Path) -> bool:
    """Rename to the target; return False if something appeared there, or went, meanwhile."""
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
            raise  # the whole folder has gone
        return False
    return True


def _rename_twice(new: Path, target: Path, old: Path) -> None:
    """Replace a folder where two cannot be swapped in one step.

    Whatever ends it in between, the scratch folder then gives one of them the name.
    """
    target.rename(old)
    try:
        rename_to_free(new, target)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
            old.rename(old.with_name(uuid.uuid4().hex))  # a later one is there already
            raise FileExistsError(*error.args) from error
        raise


def _keep(new: Path, target: Target, error: Exception) -> None:
    """Give something that cannot take its place a name of its own, and say so in the error.

    It may have taken hours to compute.
    """
    name = f"{target.path.stem[:50]}-{uuid.uuid4().hex[:8]}{target.path.suffix}"
    kept = target.path.with_name(name)
    with contextlib.suppress(OSError):
        rename_to_free(new, kept)
        error.add_note(f"The results have been computed, and are in {kept}")
