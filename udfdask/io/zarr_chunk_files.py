"""The files of a zarr array's stored chunks: whether they are those that were there at opening.

Stores have many: to list 100,000 files and carry their states would take longer than to read them.
Tasks therefore compare times. What was written after the array was opened is newer, and so is the
folder of a file that was deleted, which zarr would read as fill values without a word.
"""

from __future__ import annotations

import itertools
import math
import os
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dask.base import tokenize

from udfdask.errors import FileFormatError

MOST_LISTED = 4096
"""Stored chunks up to which each is looked at when the array is opened: 0.1 s on a local disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkFiles:
    """When a zarr array was opened, and what its chunks were then."""

    opened_ns: int
    """When it was opened, ns since 1970 by the clock of its files."""
    listing: str
    """Stands for the sizes and times of all chunks. If there are too many, it stands for this
    opening alone, so that no results are taken for those of changed chunks."""

    @classmethod
    def of(cls, array: Any, folder: Path) -> ChunkFiles:
        """Take an open zarr array and its folder; return the state of its chunks."""
        now = _clock_ns()
        grid = [-(-size // step) for size, step in zip(array.shape, _steps(array), strict=True)]
        if math.prod(grid) > MOST_LISTED:
            return cls(opened_ns=now, listing=uuid.uuid4().hex)
        found = []
        for key in _chunks(array, [range(count) for count in grid]):
            try:
                state = (folder / key).stat()
            except (FileNotFoundError, NotADirectoryError):  # a chunk of fill values
                now = max(now, _latest(_folder_of_missing(folder / key).stat()))
                continue
            found.append((key, state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino))
            now = max(now, _latest(state))  # of a file server with a fast clock
        return cls(opened_ns=now, listing=tokenize(repr(found)))

    def __dask_tokenize__(self) -> str:
        """Return what names of arrays depend on: not on when somebody opened it."""
        return self.listing

    def check(self, folder: Path, keys: Iterable[str]) -> None:
        """Take an array's folder and chunks that were read; raise if one is newer than the opening.

        Opened just after another program wrote it, on a file server whose clock is behind, this
        finds no change for as long as the clock is behind.
        """
        for key in keys:
            path = folder / key
            try:
                state = path.stat()
            except (FileNotFoundError, NotADirectoryError):
                there = _folder_of_missing(path)
                if _latest(there.stat()) > self.opened_ns:
                    raise FileFormatError(
                        f"there is no chunk {path}, and {there} has changed since the array was "
                        "opened: fill values would be read in its place. Put the chunk back, or "
                        "open the array again if the chunk never existed"
                    ) from None
                continue
            if _latest(state) > self.opened_ns:
                raise FileFormatError(
                    f"{path} was written after the array was opened. Open the array again, and "
                    "compute again what came from it"
                )


def touched_chunks(array: Any, index: tuple[slice | int, ...]) -> dict[str, tuple[int, ...]]:
    """Take an open zarr array and a part of it; return the stored chunks that the part touches.

    Each is the path of its file with its place: (0, 1) is the second chunk of the first row.
    """
    ranges = []
    for part, size, step in zip(index, array.shape, _steps(array), strict=True):
        whole = part if isinstance(part, slice) else slice(part, part + 1)
        along = range(size)[whole]
        ends = sorted((along[0], along[-1])) if along else (0, -1)
        ranges.append(range(ends[0] // step, ends[1] // step + 1))
    return _chunks(array, ranges)


def _chunks(array: Any, ranges: list[range]) -> dict[str, tuple[int, ...]]:
    """Take an open zarr array and places in its grid of stored chunks; return paths and places."""
    places = list(itertools.product(*ranges))
    # zarr 3 asks the metadata, zarr 2 the array
    key = getattr(getattr(array, "metadata", None), "encode_chunk_key", None)
    if key is None:
        prefix = array._key_prefix
        return {array._chunk_key(place).removeprefix(prefix): place for place in places}
    return {str(key(place)): place for place in places}


def _steps(array: Any) -> tuple[int, ...]:
    """Take an open zarr array; return the shape of what one file holds."""
    steps: tuple[int, ...] = getattr(array, "shards", None) or array.chunks
    return steps


def _clock_ns() -> int:
    """Return the time by the clock of local files, ns since 1970."""
    # The clock that the kernel takes modification times from is some ms behind the other one.
    coarse = getattr(time, "CLOCK_REALTIME_COARSE", None)
    return time.time_ns() if coarse is None else time.clock_gettime_ns(coarse)


def _folder_of_missing(path: Path) -> Path:
    """Take the path of a chunk that is not there; return the folder that it would be missing in."""
    return next(above for above in path.parents if above.is_dir())


def _latest(state: os.stat_result) -> int:
    """Take the state of a file; return when it was written here.

    The time of the last change alone is that of a `chmod`; the modification time alone may come
    with a copy, from a clock that was ahead.
    """
    return min(state.st_mtime_ns, state.st_ctime_ns)
