"""The frames of a chunk as UDFs get them: dense or sparse, selected, corrected in order."""

from __future__ import annotations

import copy
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from udfdask.backends.backend import Backend, DenseBackend
from udfdask.backends.sparse_rows import SparseBackend, SparseRows, csr_rows
from udfdask.backends.table import (
    check_block,
    fill_value,
    is_unknown_sparse,
    plain_block,
    to_backend,
)
from udfdask.errors import UDFError
from udfdask.geometry.chunk_grid import BoolArray
from udfdask.types import AnyArray

if TYPE_CHECKING:
    from udfdask.descan.shift_tile import FrameShifts


class FrameSource(ABC):
    """The selected frames of a chunk, given as one block per signal chunk.

    All arrays that it returns are read-only. It never copies more than it returns.

    Parameters
    ----------
    blocks : sequence of array, each of shape (*nav_shape, *sizes of the signal chunk)
        In C order of the signal chunk grid, all of one backend.
    backend : Backend
        Array backend of the blocks.
    nav_shape : tuple of int
        Scan positions of the chunk along each navigation axis.
    sig_chunks : tuple of tuple of int
        Sizes of the signal chunks along each signal axis, in pixels.
    mask : numpy.ndarray of bool or None
        The selected frames, flattened; None for all.
    dtype : numpy.dtype
        Dtype of the dask array.
    """

    def __init__(
        self,
        blocks: Sequence[Any],
        backend: Backend,
        nav_shape: tuple[int, ...],
        sig_chunks: tuple[tuple[int, ...], ...],
        mask: BoolArray | None,
        dtype: np.dtype[Any],
    ) -> None:
        self._nav_shape = nav_shape
        self._positions = None if mask is None else np.flatnonzero(mask)
        self._sig_chunks = sig_chunks
        self._dtype = dtype
        self._sig = tuple(sum(c) for c in sig_chunks)
        self.backend = backend
        self.dense: DenseBackend = backend.dense
        sizes = itertools.product(*sig_chunks)
        self._blocks = [
            self._read(block, nav_shape + size) for block, size in zip(blocks, sizes, strict=True)
        ]

    @property
    def n_blocks(self) -> int:
        """Number of signal chunks in this source."""
        return len(self._blocks)

    @property
    def tiles_are_views(self) -> bool:
        """Whether tiles of many frames are views that kernels read without a copy."""
        return False

    def _read(self, block: Any, shape: tuple[int, ...]) -> Any:
        """Return a block in the form that frames are cut from; raise if it is not as announced."""
        check_block(block, shape, self._dtype, "a chunk")
        return block

    @abstractmethod
    def tile(self, start: int, stop: int, number: int, index: tuple[slice, ...]) -> AnyArray:
        """Return rows `start` to `stop` of block `number`, cut to `index` in the signal, dense."""

    @abstractmethod
    def _pixels(self, number: int, start: int, stop: int, places: tuple[AnyArray, ...]) -> AnyArray:
        """Return some pixels of rows `start` to `stop` of block `number`, shape (rows, m)."""

    def pixels(self, start: int, stop: int, places: AnyArray) -> AnyArray:
        """Return some pixels of rows `start` to `stop`, shape (rows, m).

        `places` are the positions in a frame, int, (sig dims, m). Excluded pixels are patched from
        pixels outside of their tile with this.
        """
        out = self.dense.empty((stop - start, places.shape[1]), self._dtype)
        starts = [np.cumsum((0, *sizes[:-1])) for sizes in self._sig_chunks]
        block_of = [
            np.searchsorted(first, place, side="right") - 1
            for first, place in zip(starts, places, strict=True)
        ]
        local = [p - first[k] for p, first, k in zip(places, starts, block_of, strict=True)]
        numbers = np.ravel_multi_index(block_of, [len(sizes) for sizes in self._sig_chunks])
        for number in np.unique(numbers):
            these = np.flatnonzero(numbers == number)
            out[:, these] = self._pixels(number, start, stop, tuple(p[these] for p in local))
        return self.dense.read_only(out)

    def frames(self, start: int, stop: int) -> AnyArray:
        """Return the full frames of rows `start` to `stop`, dense."""
        return self.window(start, stop, tuple(slice(0, n) for n in self._sig))

    def window(self, start: int, stop: int, index: tuple[slice, ...]) -> AnyArray:
        """Return a part of the frames of rows `start` to `stop`, dense, from any signal chunks."""
        if len(self._blocks) == 1:
            return self.tile(start, stop, 0, index)
        out = self.dense.empty((stop - start, *(i.stop - i.start for i in index)), self._dtype)
        for number, block in enumerate(signal_windows(self._sig_chunks)):
            common = [
                (max(i.start, b.start), min(i.stop, b.stop))
                for i, b in zip(index, block, strict=True)
            ]
            if all(first < last for first, last in common):
                there = _relative(common, block)
                out[(slice(None), *_relative(common, index))] = self.tile(
                    start, stop, number, there
                )
        return self.dense.read_only(out)


def _relative(spans: list[tuple[int, int]], window: tuple[slice, ...]) -> tuple[slice, ...]:
    """Return where the pixels from first to last along each axis are in a window."""
    return tuple(
        slice(first - w.start, last - w.start)
        for (first, last), w in zip(spans, window, strict=True)
    )


def signal_windows(sig_chunks: tuple[tuple[int, ...], ...]) -> list[tuple[slice, ...]]:
    """Return where each signal chunk lies in a frame, in C order."""
    windows = [
        [slice(stop - n, stop) for n, stop in zip(sizes, itertools.accumulate(sizes), strict=True)]
        for sizes in sig_chunks
    ]
    return list(itertools.product(*windows))


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

    def _read(self, block: Any, shape: tuple[int, ...]) -> Any:
        """Return a read-only block, with flattened navigation axes if that is a view."""
        return self.dense.with_flat_nav(super()._read(block, shape), self._nav_shape)

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


class SparseSource(FrameSource):
    """The selected frames of a chunk whose blocks are sparse arrays or matrices."""

    backend: SparseBackend

    def _read(self, block: Any, shape: tuple[int, ...]) -> SparseRows:
        """Return the selected frames of a block."""
        rows = self.backend.frames(super()._read(block, shape), len(self._nav_shape))
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
        from udfdask.descan.shift_tile import moved_entries  # few runs need it

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


def source_of(
    blocks: Sequence[Any],
    kinds: Sequence[Backend],
    nav_shape: tuple[int, ...],
    sig_chunks: tuple[tuple[int, ...], ...],
    mask: BoolArray | None,
    dtype: np.dtype[Any],
) -> FrameSource:
    """Return the frames of a chunk; the arguments are those of `FrameSource`.

    `kinds` are the backends of the blocks. All blocks are converted to the backend of the first
    one. Raise if a block has masked values.
    """
    native, converted = converted_blocks(blocks, kinds, len(nav_shape), len(sig_chunks))
    source = SparseSource if native.is_sparse else DenseSource
    return source(converted, native, nav_shape, sig_chunks, mask, dtype)


def converted_blocks(
    blocks: Sequence[Any], kinds: Sequence[Backend], nav_dims: int, sig_dims: int
) -> tuple[Backend, list[Any]]:
    """Return the backend of the first block, and all blocks in this backend.

    Raise if a block has masked values, or a sparse format that frames cannot be read from.
    """
    native = kinds[0]
    converted = []
    for block, kind in zip(blocks, kinds, strict=True):
        plain = block
        if type(block) is not np.ndarray:  # of a NumPy array, only shape and dtype can be wrong
            plain = plain_block(block, "a chunk")
            _check_sparse(plain, kind, nav_dims, sig_dims)
        converted.append(plain if kind == native else to_backend(plain, native, plain.shape))
    return native, converted


def _check_sparse(block: Any, kind: Backend, nav_dims: int, sig_dims: int) -> None:
    """Raise if a sparse block cannot be processed: the plan has only seen the meta."""
    if is_unknown_sparse(block):
        raise UDFError(
            f"a chunk of type {type(block).__name__} came, a sparse format that frames cannot be "
            "read from: convert it, such as with array.map_blocks(lambda block: block.tocsr())"
        )
    filled = fill_value(block)
    if filled != 0:
        raise UDFError(
            f"a sparse chunk came with the fill value {filled!r}, expected 0: values that are not "
            "stored must be 0"
        )
    if kind.is_matrix and (nav_dims, sig_dims) != (1, 1):
        raise UDFError(
            f"a matrix of type {type(block).__name__} came, in which each row is a frame, but "
            f"chunks have {nav_dims} navigation and {sig_dims} signal dimensions: use sparse.GCXS, "
            "which keeps the shape of scan and frames"
        )
