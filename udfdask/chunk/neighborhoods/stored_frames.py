"""Frames and aux data around a chunk, stored for the tasks of its neighbors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from udfdask.backends.backend import DenseBackend, locked
from udfdask.backends.sparse_rows import SparseRows
from udfdask.backends.table import check_block, plain_block, to_host
from udfdask.chunk.frames import signal_windows
from udfdask.chunk.partial_result import Sized
from udfdask.geometry.chunk_grid import Grid
from udfdask.geometry.halo import Box, Halo, Piece, box_of
from udfdask.types import AnyArray
from udfdask.udf.aux_data import AuxData


@dataclass(frozen=True, eq=False)
class StoredFrames(Sized):
    """The frames of a box of scan positions, as they came: with all signal chunks, maybe sparse."""

    box: Box
    """The scan positions."""
    blocks: tuple[Any, ...]
    """For each signal chunk, an array of shape (*box, *part of sig), or the frames as sparse rows.
    """
    sig_chunks: tuple[tuple[int, ...], ...]
    """Chunk sizes along each signal axis, in pixels."""
    backend: DenseBackend
    """Array backend of dense frames."""

    @property
    def nbytes(self) -> int:
        """Size in bytes; of sparse frames, that of their values and indices."""
        parts: list[Any] = []
        for block in self.blocks:
            csr = block.csr if isinstance(block, SparseRows) else None
            parts += [block] if csr is None else [csr.data, csr.indices, csr.indptr]
        return sum(int(part.nbytes) for part in parts)

    def part(self, box: Box) -> StoredFrames:
        """Return some of the frames; dense ones are a view, of which only these are sent."""
        blocks = (
            block.take(self._positions(box))
            if isinstance(block, SparseRows)
            else block[_within(box, self.box)]
            for block in self.blocks
        )
        return StoredFrames(box, tuple(blocks), self.sig_chunks, self.backend)

    def cut(self, box: Box) -> StoredFrames:
        """Return a copy of some of the frames, which keeps nothing else in memory."""
        part = self.part(box)
        copies = (
            block if isinstance(block, SparseRows) else self.backend.own_copy(block, block.dtype)
            for block in part.blocks
        )
        return replace(part, blocks=tuple(copies))

    def dense(self, box: Box, dtype: np.dtype[Any]) -> AnyArray:
        """Return some of the frames, shape (*box, *sig): a view if they are dense and not cut."""
        shape = tuple(stop - first for first, stop in box)
        parts = [self._dense(block, box, shape) for block in self.blocks]
        if len(parts) == 1:
            return parts[0]
        sig = tuple(map(sum, self.sig_chunks))
        joined = self.backend.empty((*shape, *sig), dtype)
        for window, part in zip(signal_windows(self.sig_chunks), parts, strict=True):
            place: Any = (..., *window)
            joined[place] = part
        return joined

    def _dense(self, block: Any, box: Box, shape: tuple[int, ...]) -> AnyArray:
        """Return some frames of one signal chunk."""
        if not isinstance(block, SparseRows):
            return cast(AnyArray, block[_within(box, self.box)])
        rows = block.take(self._positions(box))
        return rows.dense(0, len(rows), 0, math.prod(rows.sig)).reshape((*shape, *rows.sig))

    def _positions(self, box: Box) -> AnyArray:
        """Return the flat numbers of some positions in the box."""
        shape = tuple(stop - first for first, stop in self.box)
        return np.arange(math.prod(shape)).reshape(shape)[_within(box, self.box)].reshape(-1)

    def holds(self, box: Box) -> bool:
        """Return whether it has the frames of a box."""
        return all(
            start <= first and stop <= end
            for (first, stop), (start, end) in zip(box, self.box, strict=True)
        )


Stores = Mapping[tuple[int, ...], Sequence[StoredFrames]]
"""Frames by the index of their chunk in dask's grid."""


def window_of(
    stores: Stores, parts: Sequence[Piece], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> AnyArray:
    """Return a window of frames, shape (*shape, *sig), made of some pieces; missing frames are 0.

    It is a view if one piece fills it.
    """
    if len(parts) == 1 and all(
        p == slice(0, n) for p, n in zip(parts[0].place, shape, strict=True)
    ):
        return _holder(stores, parts[0]).dense(parts[0].source, dtype)
    window: AnyArray | None = None
    for part in parts:
        store = _holder(stores, part)
        values = store.dense(part.source, dtype)
        if window is None:
            window = store.backend.empty((*shape, *values.shape[len(shape) :]), dtype)
            n_frames = sum(math.prod(stop - first for first, stop in p.source) for p in parts)
            if n_frames < math.prod(shape):
                window[...] = 0
        window[part.place] = values
    assert window is not None  # the position in the middle of a window exists
    return window


def _holder(stores: Stores, part: Piece) -> StoredFrames:
    """Return the stored frames that have those of a piece."""
    return next(store for store in stores[part.chunk] if store.holds(part.source))


AuxStores = Sequence[Mapping[tuple[int, ...], AnyArray] | None]
"""For each of `recipe.aux_slots`, the values of chunks by their index, shape (*nav part,
*extra_shape); None for other UDFs."""


def checked_values(block: Any, box: Box, aux: AuxData, what: str) -> AnyArray:
    """Return the values of a box of scan positions; `what` names them.

    Raise if a lazy block differs from its announced shape or dtype.
    """
    origin = f"{what}: a chunk"
    values = to_host(plain_block(block, origin))
    shape = (*(stop - first for first, stop in box), *aux.extra_shape)
    check_block(values, shape, aux.dtype, origin)
    return locked(values.astype(aux.dtype, copy=False))


def aux_window(
    stores: Mapping[tuple[int, ...], AnyArray] | None, halo: Halo, box: Box, grid: Grid
) -> AnyArray:
    """Return the values of a window around some positions, read-only; 0 where there is none."""
    assert stores is not None
    first = next(iter(stores.values()))
    window = np.zeros((*halo.around(box), *first.shape[len(box) :]), first.dtype)
    for part in halo.pieces(box, grid):
        if part.chunk in stores:
            place = _within(part.source, box_of(grid, part.chunk))
            window[part.place] = stores[part.chunk][place]
    return locked(window)


def _within(box: Box, held: Box) -> tuple[slice, ...]:
    """Return where some positions are in a box."""
    return tuple(
        slice(first - start, stop - start)
        for (first, stop), (start, _) in zip(box, held, strict=True)
    )
