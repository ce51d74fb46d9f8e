"""Check that the files of a zarr array's stored chunks have not changed since it was opened.

A store can have 100,000 files: to list them and to send their states to tasks would take longer
than to read them. So tasks compare times. A file that was written after the array was opened is
newer. If a file was deleted, its folder is newer; zarr would silently read fill values.
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
"""Number of stored chunks up to which opening an array looks at each: 0.1 s on a local disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkFiles:
    """The time when a zarr array was opened, and the state of its chunks at that time."""

    opened_ns: int
    """Time of opening by the clock of the files, in ns since 1970."""
    listing: str
    """Token of the sizes and times of all chunks. With too many chunks it is random, so that stored
    results of changed chunks cannot be used by mistake."""

    @classmethod
    def of(cls, array: Any, folder: Path) -> ChunkFiles:
        """Return the present state of the chunks of an open zarr array in a folder."""
        now = _clock_ns()
        grid = [-(-n // step) for n, step in zip(array.shape, stored_shape(array), strict=True)]
        if math.prod(grid) > MOST_LISTED:
            return cls(opened_ns=now, listing=uuid.uuid4().hex)
        states = []
        for key in _chunks(array, [range(count) for count in grid]):
            try:
                state = (folder / key).stat()
            except (FileNotFoundError, NotADirectoryError):  # this chunk contains only fill values
                now = max(now, _latest(_folder_of_missing(folder / key).stat()))
                continue
            states.append((key, state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino))
            now = max(now, _latest(state))  # the clock of a file server can be ahead
        return cls(opened_ns=now, listing=tokenize(repr(states)))

    def __dask_tokenize__(self) -> str:
        """Return the part on which names of arrays depend: not the time of opening."""
        return self.listing

    def check(self, folder: Path, keys: Iterable[str]) -> None:
        """Raise if one of some chunks was written or deleted after the array was opened.

        If the clock of a file server is behind, changes during this time after opening are missed.
        """
        for key in keys:
            path = folder / key
            try:
                state = path.stat()
            except (FileNotFoundError, NotADirectoryError):
                parent = _folder_of_missing(path)
                if _latest(parent.stat()) > self.opened_ns:
                    raise FileFormatError(
                        f"there is no chunk {path}, and {parent} has changed since the array was "
                        "opened: zarr would read fill values instead. Put the chunk back, or open "
                        "the array again if the chunk never existed"
                    ) from None
                continue
            if _latest(state) > self.opened_ns:
                raise FileFormatError(
                    f"{path} was written after the array was opened. Open the array again, and "
                    "repeat all computations with it"
                )


def touched_chunks(array: Any, index: tuple[slice | int, ...]) -> dict[str, tuple[int, ...]]:
    """Return the stored chunks that contain a part of an open zarr array: paths and positions.

    The position (0, 1) is the second chunk of the first row.
    """
    ranges = []
    for part, size, step in zip(index, array.shape, stored_shape(array), strict=True):
        indices = range(size)[part if isinstance(part, slice) else slice(part, part + 1)]
        ends = sorted((indices[0], indices[-1])) if indices else (0, -1)
        ranges.append(range(ends[0] // step, ends[1] // step + 1))
    return _chunks(array, ranges)


def _chunks(array: Any, ranges: list[range]) -> dict[str, tuple[int, ...]]:
    """Return the paths of stored chunks by their positions in the grid of chunks."""
    return {chunk_key(array, place): place for place in itertools.product(*ranges)}


def chunk_key(array: Any, place: tuple[int, ...]) -> str:
    """Return the path, in the folder of an open zarr array, of the file at a position."""
    # the method belongs to the metadata in zarr 3, and to the array in zarr 2
    key = getattr(getattr(array, "metadata", None), "encode_chunk_key", None)
    if key is None:
        return str(array._chunk_key(place).removeprefix(array._key_prefix))
    return str(key(place))


def stored_shape(array: Any) -> tuple[int, ...]:
    """Return the shape of the part of a zarr array that one file contains: a shard or a chunk."""
    shape: tuple[int, ...] = getattr(array, "shards", None) or array.chunks
    return shape


def _clock_ns() -> int:
    """Return the time by the clock of local files, in ns since 1970."""
    # The kernel sets modification times by this clock, which is some ms behind the other one.
    coarse = getattr(time, "CLOCK_REALTIME_COARSE", None)
    return time.time_ns() if coarse is None else time.clock_gettime_ns(coarse)


def _folder_of_missing(path: Path) -> Path:
    """Return the lowest existing folder above a missing chunk."""
    return next(above for above in path.parents if above.is_dir())


def _latest(state: os.stat_result) -> int:
    """Return the time when a file was written here.

    `chmod` sets the change time; a copy can have the modification time of a clock that was ahead.
    So use the earlier of the two times.
    """
    return min(state.st_mtime_ns, state.st_ctime_ns)
