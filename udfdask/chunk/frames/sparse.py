"""Cut frames from sparse blocks: sparse as they are, or dense, tile by tile."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from udfdask.arrays.backends.backend import SparseBackend
from udfdask.arrays.backends.convert import to_backend
from udfdask.arrays.backends.sparse_rows import SparseRows, csr_rows
from udfdask.chunk.frames.source import FrameSource
from udfdask.types import AnyArray

if TYPE_CHECKING:
    from udfdask.descan.frame_shifts import FrameShifts


class SparseSource(FrameSource):
    """The selected frames of a chunk whose blocks are sparse arrays or matrices."""

    backend: SparseBackend

    @property
    def tiles_are_views(self) -> bool:
        """Whether dense tiles are views: never, they are made from sparse rows."""
        return False

    def _read(self, block: Any) -> SparseRows:
        """Return the selected frames of a block."""
        rows = self.backend.frames(block, len(self._nav_shape))
        return rows if self._positions is None else rows.take(self._positions)

    def tile(self, start: int, stop: int, number: int, index: tuple[slice, ...]) -> AnyArray:
        """Return rows `start` to `stop` of block `number`, cut to `index` in the signal, dense."""
        rows: SparseRows = self._blocks[number]
        cut = [i.indices(n) for i, n in zip(index, rows.sig, strict=True)]
        first = tuple(start for start, _, _ in cut)
        shape = tuple(stop - start for start, stop, _ in cut)
        if 0 in shape:
            return self.dense.empty((stop - start, *shape), rows.dtype)
        # The tiling cuts leading axes first, so that a part is a run of neighboring pixels. A
        # window of shifted frames can be any part: it is cut out of all lines that it touches.
        lead = next((k for k, n in enumerate(shape) if n > 1), len(shape) - 1)
        lines = (*shape[: lead + 1], *rows.sig[lead + 1 :])
        at = (*first[: lead + 1], *(0 for _ in shape[lead + 1 :]))
        origin = int(np.ravel_multi_index(at, rows.sig))
        tile = rows.dense(start, stop, origin, origin + math.prod(lines))
        tile = tile.reshape((stop - start, *lines))
        return self.dense.read_only(
            tile[(slice(None), *(slice(None),) * (lead + 1), *index[lead + 1 :])]
        )

    def _pixels(self, number: int, start: int, stop: int, places: tuple[AnyArray, ...]) -> AnyArray:
        """Return some pixels of rows `start` to `stop` of block `number`, shape (rows, m)."""
        rows: SparseRows = self._blocks[number]
        return rows.pixels(start, stop, np.ravel_multi_index(places, rows.sig))

    def shifted(self, shifts: FrameShifts) -> SparseSource:
        """Return a source of the frames, shifted by whole pixels, as one block of full frames."""
        from udfdask.descan.move_entries import moved_entries  # few runs need it

        backend: SparseBackend = self._blocks[0].backend  # dictionaries of keys became COO
        rows = backend.frames_of_stack(self.sparse_frames(0, len(self._blocks[0])))
        csr, shape = rows.csr, (len(rows), *self._sig)
        entries = moved_entries(csr.data, csr.indices, csr.indptr, shifts.whole, self._sig)
        moved = csr_rows(type(csr), *entries, csr.shape[1])
        source = copy.copy(self)
        source._blocks = [backend.frames_of_stack(to_backend(moved, backend, shape))]
        source._sig_chunks = tuple((n,) for n in self._sig)
        return source

    def sparse_tile(self, start: int, stop: int, number: int) -> Any:
        """Return rows `start` to `stop` of block `number` in the backend of the data."""
        return self._blocks[number].rows(start, stop)

    def sparse_frames(self, start: int, stop: int) -> Any:
        """Return the full frames of rows `start` to `stop` in the backend of the data."""
        parts = [block.rows(start, stop) for block in self._blocks]
        if len(parts) == 1:
            return parts[0]
        backend: SparseBackend = self._blocks[0].backend
        return backend.join(parts, [len(sizes) for sizes in self._sig_chunks])
