"""Rename with special system calls: swap two paths, or refuse to replace an existing path."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

_AT_FDCWD = -100
# For each system: the flag that refuses to replace, and the flag that swaps.
_FLAGS = {"linux": (1, 2), "darwin": (4, 2)}
# NFS, some FUSE file systems and old kernels support neither flag.
_UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}


def exchange(one: Path, other: Path) -> bool:
    """Swap two paths in one step; return False if the file system cannot do that."""
    return _rename(one, other, flag=1)


def rename_to_free(source: Path, target: Path) -> None:
    """Rename; raise FileExistsError if the target already exists."""
    if _rename(source, target, flag=0):
        return
    taken = FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    if os.path.lexists(target):
        raise taken
    # Without the system call, another process can create the target between these two steps.
    try:
        source.rename(target)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            raise taken from error
        raise


def flush(path: Path) -> None:
    """Wait until a file, or all files of a folder, are on the disk.

    Otherwise a power failure after the deletion of the old file could leave an empty new file.
    """
    for folder, _, files in os.walk(path):
        for name in files:
            _flush_one(Path(folder, name))
        _flush_one(Path(folder))
    if path.is_file():
        _flush_one(path)


def flush_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    _flush_one(path)


def _flush_one(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    if sys.platform == "win32" and path.is_dir():
        return  # Windows cannot open folders
    # Windows flushes only files that are open for writing
    descriptor = os.open(path, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # some network file systems cannot flush folders
        if error.errno not in _UNSUPPORTED or not path.is_dir():
            raise
    finally:
        os.close(descriptor)


def _rename(source: Path, target: Path, *, flag: int) -> bool:
    """Rename with a flag from `_FLAGS`; return False if the system does not support it."""
    function = _function()
    if function is None:
        return False
    flags = _FLAGS[sys.platform][flag]
    names = os.fsencode(source), os.fsencode(target)
    if sys.platform == "linux":
        failed = function(_AT_FDCWD, names[0], _AT_FDCWD, names[1], flags)
    else:
        failed = function(*names, flags)
    if not failed:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), str(source), None, str(target))


@cache
def _function() -> Any:
    """Return the C library's rename function with flags; None if there is no such function."""
    if sys.platform not in _FLAGS:
        return None
    library = ctypes.CDLL(None, use_errno=True)
    return getattr(library, "renameat2" if sys.platform == "linux" else "renamex_np", None)
