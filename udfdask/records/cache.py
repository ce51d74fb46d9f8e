"""A cache: a folder with the records of any number of runs, up to a limit.

Several processes may use it at the same time. A record is renamed into place when it is complete,
and two processes that write the same record write equal values. A record that has been removed
since it was found is computed again.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path

from udfdask.records.folder import SUFFIX, RecordFolder
from udfdask.records.own_folder import check_folder

MARK = "udfdask-cache"
"""Name of an empty file that marks a folder as a cache."""
_RECORDS = "records"

_BLOCK = 4096
"""Smallest part of a disk that a file takes, in bytes."""
_KEPT = 0.9
"""Part of the limit that is left when records are removed."""
_STALE = 3600
"""Age in seconds at which an unfinished file belongs to a process that was killed."""


def check_cache(path: str | os.PathLike[str]) -> Path:
    """Return the absolute path of a cache; raise if there cannot be one."""
    known = {MARK, _RECORDS}
    folder = check_folder(path, "cache", "", known)
    # somebody may be removing the cache, the mark first; the folder of another tool has other files
    mark = "" if (folder / MARK).exists() or _has_only_records(folder / _RECORDS) else MARK
    return check_folder(folder, "cache", mark, known)


def _has_only_records(folder: Path) -> bool:
    """Return whether a folder has records, finished or not, and no other files."""
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except OSError:  # it does not exist, or is a file
        return False
    return bool(names) and all(SUFFIX in name for name in names)


def open_cache(path: str | os.PathLike[str], limit: int) -> RecordFolder:
    """Return the records of a cache, which is made if it does not exist.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If `path` is not the path of a folder that is a cache, new or empty.
    OSError
        If the folder cannot be made.
    """
    folder = check_cache(path)
    records = folder / _RECORDS
    if not (records.is_dir() and (folder / MARK).exists()):
        folder.mkdir(exist_ok=True)
        (folder / MARK).touch()  # first, because a folder without a mark is not a cache
        records.mkdir(exist_ok=True)
    return RecordFolder(str(records), limit)


class Limits:
    """Removes the records that have not been used for the longest time, when there are too many.

    Each process counts what it writes, and looks at all files only when half of the free part of a
    cache, or a thirtieth of a full one, may be used up: 100,000 files take about 0.3 s.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left: dict[RecordFolder, float] = {}

    def count(self, folder: RecordFolder, nbytes: int, n_files: int) -> None:
        """Note that files have been written; remove others if there is no room for them."""
        if folder.limit is None:
            return
        with self._lock:
            left = self._left.get(folder, 0) - nbytes - n_files * _BLOCK
            if left <= 0:
                total = remove_unused(folder)
                left = max((folder.limit - total) / 2, folder.limit / 30)
            self._left[folder] = left


def remove_unused(folder: RecordFolder) -> int:
    """Remove records if they are larger than the limit together; return the size of the others."""
    assert folder.limit is not None
    found: list[tuple[int, int, str]] = []
    with contextlib.suppress(OSError), os.scandir(folder.path) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # another process has removed it
                status = entry.stat()
                if entry.name.endswith(SUFFIX):
                    found.append((status.st_mtime_ns, status.st_size, entry.path))
                elif entry.name.startswith(".") and status.st_mtime < time.time() - _STALE:
                    os.unlink(entry.path)  # noqa: PTH108
    total = sum(_on_disk(size) for _, size, _ in found)
    if total > folder.limit:
        for _, size, path in sorted(found):
            if total <= _KEPT * folder.limit:
                break
            with contextlib.suppress(OSError):
                os.unlink(path)  # noqa: PTH108
            total -= _on_disk(size)
    return total


def _on_disk(size: int) -> int:
    """Return the size that a file takes on the disk."""
    return -(-size // _BLOCK) * _BLOCK
