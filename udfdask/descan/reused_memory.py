"""Memory for one shifted tile after the other."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from udfdask.types import AnyArray

ALIGNMENT = 64
"""Bytes of a cache line: tiles that start with one are interpolated in 0.9 of the time."""


class ReusedMemory:
    """Memory for the tiles of a task, used again if nobody holds the tile before.

    A program gets new memory from the system as empty pages, one by one, when it first writes to
    them. For tiles of a few MiB, this takes as long as copying the pixels to them. A UDF may keep a
    tile: then the next tile gets new memory, so that the kept one does not change.
    """

    def __init__(self) -> None:
        self._owners: dict[np.dtype[Any], AnyArray] = {}

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> AnyArray:
        """Return an array, C-ordered, with any values.

        There is memory for one array of each dtype: UDFs may want a tile in different ones.
        """
        size = math.prod(shape) * dtype.itemsize
        owner = self._owners.get(dtype)
        if owner is None or owner.size < size or sys.getrefcount(owner.base) > _UNUSED:
            self._owners.pop(dtype, None)
            owner = None  # the old memory is free before new memory is taken
            owner = self._owners[dtype] = _aligned(size)
        return owner[:size].view(dtype).reshape(shape)


def _aligned(size: int) -> AnyArray:
    """Return memory of some bytes that starts with a cache line."""
    memory = np.empty(size + ALIGNMENT, dtype=np.uint8)
    return memory[-memory.ctypes.data % ALIGNMENT :]


_unused = _aligned(0)
_UNUSED = sys.getrefcount(_unused.base)
"""The number of references to memory that nobody uses: that of the one view that owns it."""
