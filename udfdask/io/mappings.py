"""Files mapped into memory. Each mapping holds a descriptor, and many processes may have 1024."""

from __future__ import annotations

import mmap
import os
import threading
import weakref

MOST_OWN = 128
"""Mappings up to which each block has its own: what is freed block by block leaves the memory that
a worker of a cluster counts as used. Beyond, the blocks of a file share one: so many are alive only
where somebody keeps them, as `persist` does."""

_Place = tuple[int, int, int]
"""Device, inode and size: a mapped file's inode is not given to another file."""

_lock = threading.Lock()
_alive: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
_latest: weakref.WeakValueDictionary[_Place, mmap.mmap] = weakref.WeakValueDictionary()


def map_file(descriptor: int, size: int) -> mmap.mmap:
    """Take a descriptor of a file and its size; return its memory, perhaps shared, read-only."""
    found = os.fstat(descriptor)
    place = found.st_dev, found.st_ino, size
    with _lock:
        shared = _latest.get(place) if len(_alive) >= MOST_OWN else None
        if shared is not None:
            return shared
        memory = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
        _alive.add(memory)
        _latest[place] = memory
        return memory
