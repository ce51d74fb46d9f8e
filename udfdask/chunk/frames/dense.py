"""Cut frames from dense blocks: views where the memory layout allows, else small copies."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.chunk.frames.source import FrameSource
from udfdask.types import AnyArray


class DenseSource(FrameSource):
    """The selected frames of a chunk whose blocks are dense arrays."""

    @property
    def tiles_are_views(self) -> bool:
        """Whether tiles of many frames are views that kernels read without a copy."""
        flat = 1 + len(self._sig)
        return self._positions is None and all(
            block.ndim == flat and self.dense.has_neighboring_frames(block)
            for block in self._blocks
        )

    def _read(self, block: Any) -> AnyArray:
        """Return a read-only block, with flattened navigation axes if that is a view."""
        read: AnyArray = self.dense.with_flat_nav(block, self._nav_shape)
        return read

    def tile(self, start: int, stop: int, number: int, index: tuple[slice, ...]) -> AnyArray:
        """Return rows `start` to `stop` of block `number`, cut to `index` in the signal."""
        block: AnyArray = self._blocks[number]
        first, last = start, stop
        if self._positions is not None:
            first, last = int(self._positions[start]), int(self._positions[stop - 1]) + 1
        contiguous = last - first == stop - start
        if block.ndim == 1 + len(index):
            if contiguous:
                return block[(slice(first, last), *index)]
            assert self._positions is not None
            return self.dense.read_only(block[(slice(None), *index)][self._positions[start:stop]])
        if contiguous:
            *outer, line = (int(i) for i in np.unravel_index(first, self._nav_shape))
            end = line + stop - start
            if end <= self._nav_shape[-1]:  # all in one scan line
                place: tuple[Any, ...] = (*outer, slice(line, end), *index)
                line_of_frames: AnyArray = block[place]
                return line_of_frames
        places = np.unravel_index(self._positions_of(start, stop), self._nav_shape)
        nav = (slice(None),) * len(self._nav_shape)
        return self.dense.read_only(block[(*nav, *index)][places])

    def _positions_of(self, start: int, stop: int) -> AnyArray:
        """Return the positions of rows `start` to `stop` in the flattened chunk."""
        if self._positions is None:
            return np.arange(start, stop)
        return self._positions[start:stop]

    def _pixels(self, number: int, start: int, stop: int, places: tuple[AnyArray, ...]) -> AnyArray:
        """Return some pixels of rows `start` to `stop` of block `number`, shape (rows, m)."""
        block: AnyArray = self._blocks[number]
        chosen = self._positions_of(start, stop)
        flat = block.ndim == 1 + len(places)
        nav = (chosen,) if flat else np.unravel_index(chosen, self._nav_shape)
        picked: AnyArray = block[(*(n[:, np.newaxis] for n in nav), *places)]
        return picked
