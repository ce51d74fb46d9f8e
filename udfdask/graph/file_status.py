"""Tell whether a file, or a store of many files, is still what it was: by number, size and time."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class FileStatus:
    """What is known about a file, or about all files in a folder, without reading them."""

    real: str
    """The path without symbolic links: a link can be set to another file of equal size and time."""
    count: int
    """Number of files."""
    size: int
    """Size of all files in bytes."""
    time: int
    """Time of the last change in ns since 1970."""
    each: str = ""
    """Hash of name, size and time of each file in a folder: an older copy of a chunk of equal size
    changes none of the numbers above."""

    def named(self) -> tuple[str | int, ...]:
        """Return plain values that differ if the status differs."""
        return astuple(self)


def status_of(path: Path) -> FileStatus:
    """Return the status of a file, or of all files in a folder."""
    real = os.path.realpath(path)
    if not path.is_dir():
        status = path.stat()
        return FileStatus(real, 1, status.st_size, status.st_mtime_ns)
    found = []
    for file in _files_in(path):
        status = os.stat(file)  # noqa: PTH116  # many in a zarr store
        found.append((file, status.st_size, status.st_mtime_ns))
    digest = hashlib.blake2b(repr(sorted(found)).encode(), digest_size=16).hexdigest()
    sizes, times = [size for _, size, _ in found], [time for *_, time in found]
    return FileStatus(real, len(found), sum(sizes), max(times, default=0), digest)


def _files_in(folder: Path) -> Iterator[str]:
    """Yield the paths of all files in a folder and its folders, also through symbolic links."""
    seen = set()
    for place, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        if real in seen:  # a link to a folder above
            folders.clear()
            continue
        seen.add(real)
        for name in files:
            yield os.path.join(place, name)  # noqa: PTH118
