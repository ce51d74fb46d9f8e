"""Frames out of dense blocks on a CUDA device, where they stay."""

from __future__ import annotations

import math
from typing import Any

from udfdask.arrays.backends import names
from udfdask.chunk.frames.dense import DenseSource


class DeviceSource(DenseSource):
    """The selected frames of a chunk whose blocks are CuPy arrays.

    Those have no read-only views: who writes to a tile writes to the data.
    """

    @property
    def backend(self) -> str:
        """Array backend of the data."""
        return names.CUPY

    @property
    def together(self) -> bool:
        """Whether tiles of many frames are views."""
        flat = 1 + len(self._sig)
        return self._positions is None and all(block.ndim == flat for block in self._blocks)

    def _read(self, block: Any) -> Any:
        """Return a block, with flat navigation if that is a view of it."""
        if len(self._nav_shape) == 1 or not block.flags.c_contiguous:
            return block  # reshape would copy the whole of it
        frames = math.prod(self._nav_shape)
        return block.reshape((frames, *block.shape[len(self._nav_shape) :]))
