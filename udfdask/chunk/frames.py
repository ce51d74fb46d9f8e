"""The frames of a chunk as UDFs get them: dense or sparse, selected, corrected in order."""

from __future__ import annotations

import copy
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from udfdask.backends.backend import Backend, DenseBackend
from udfdask.backends.sparse_rows import SparseBackend, SparseRows, csr_rows
from udfdask.backends.table import check_block, fill_value, plain_block, to_backend
from udfdask.base.types import AnyArray
from udfdask.corrections.shift_tile import FrameShifts, moved_entries
from udfdask.errors import UDFError
from udfdask.geometry.chunk_grid import BoolArray

_BAND = 64
"""Pixels that are copied at a time from a block in which frames are nearer than pixels."""


class FrameSource(ABC):
    """The selected frames of a chunk, given as one block per signal chunk.

    All arrays that it returns are read-only. It never copies more than it returns.

    `blocks` have the shape (*nav_shape, *sizes of the signal chunk), in C order of the signal chunk
    grid, and are all of one backend; `mask` has the selected frames, flattened, or is None for all.
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
        self.first_pixel = (0,) * len(sig_chunks)
        self.backend = backend
        self.dense: DenseBackend = backend.dense
        sizes = itertools.product(*sig_chunks)
        for block, size in zip(blocks, sizes, strict=True):
            check_block(block, nav_shape + size, dtype, "a chunk")
        self._blocks = list(map(self._read, blocks))
        self.n_blocks = len(self._blocks)

    first_pixel: tuple[int, ...]
    """Where the first pixel of the blocks is in a frame: not 0 in a task for one signal chunk."""

    tiles_are_views = False
    """Whether tiles of many frames are views that kernels read without a copy."""

    @abstractmethod
    def _read(self, block: Any) -> Any:
        """Return a block in the form that frames are cut from."""

    @abstractmethod
    def tile(self, start: int, stop: int, number: int, index: tuple[slice, ...]) -> AnyArray:
        """Return rows `start` to `stop` of block `number`, cut to `index` in the signal, dense."""

    def pixels(self, start: int, stop: int, places: AnyArray) -> AnyArray:
        """Return some pixels of rows `start` to `stop`, shape (rows, m).

        `places` are the positions in a frame, int, (sig dims, m). Excluded pixels are patched from
        pixels outside of their tile with this.
        """
        out = self.dense.empty((stop - start, places.shape[1]), self._dtype)
        local = places - np.reshape(self.first_pixel, (-1, 1))
        *outer, width = self._sig
        lines = np.ravel_multi_index(tuple(local), self._sig) // width
        for line in np.unique(lines):
            these = np.flatnonzero(lines == line)
            along = local[-1, these]
            first = int(along.min())
            at = (slice(i, i + 1) for i in map(int, np.unravel_index(line, outer)))
            span = self.window(start, stop, (*at, slice(first, int(along.max()) + 1)))
            out[:, these] = span.reshape((stop - start, -1))[:, along - first]
        return self.dense.read_only(out)

    def window(self, start: int, stop: int, index: tuple[slice, ...]) -> AnyArray:
        """Return a part of the frames of rows `start` to `stop`, dense, from any signal chunks."""
        if self.n_blocks == 1:
            return self.tile(start, stop, 0, index)
        out = self.dense.empty((stop - start, *(i.stop - i.start for i in index)), self._dtype)
        for number, block in enumerate(signal_windows(self._sig_chunks)):
            axes = list(zip(index, block, strict=True))
            spans = [(max(i.start, b.start), min(i.stop, b.stop)) for i, b in axes]
            if all(first < last for first, last in spans):
                here, there = (
                    tuple(
                        slice(a - w.start, z - w.start)
                        for (a, z), w in zip(spans, windows, strict=True)
                    )
                    for windows in (index, block)
                )
                out[(slice(None), *here)] = self.tile(start, stop, number, there)
        return self.dense.read_only(out)


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
    def tiles_are_views(self) -> bool:  # type: ignore[override]
        """Whether tiles of many frames are views that kernels read without a copy."""
        flat = self._positions is None and all(b.ndim == 1 + len(self._sig) for b in self._blocks)
        # CuPy reads arrays with any strides
        return flat and (self.dense.on_device or all(map(_has_lines_of_frames, self._blocks)))

    def _read(self, block: Any) -> Any:
        array = self.dense.read_only(block if self.dense.on_device else np.asarray(block))
        flat = (math.prod(self._nav_shape), *array.shape[len(self._nav_shape) :])
        if self.dense.on_device:
            return array.reshape(flat) if array.flags.c_contiguous else array
        try:
            return array.reshape(flat, copy=False)
        except ValueError:
            return array

    def tile(self, start: int, stop: int, number: int, index: tuple[slice, ...]) -> AnyArray:
        """Return rows `start` to `stop` of block `number`, cut to `index` in the signal."""
        block: AnyArray = self._blocks[number]
        if self.dense.on_device or stop - start == 1 or not _has_near_frames(block, len(index)):
            return self._rows(block, start, stop, index)
        out = self.dense.empty((stop - start, *(i.stop - i.start for i in index)), block.dtype)
        for here, there in _bands(index):
            out[(slice(None), *here)] = self._rows(block, start, stop, there)
        return self.dense.read_only(out)

    def _rows(self, block: AnyArray, start: int, stop: int, index: tuple[slice, ...]) -> AnyArray:
        """Return rows of a block, a view if they are at equal distances."""
        positions = self._positions
        first, last = start, stop
        if positions is not None:
            first, last = int(positions[start]), int(positions[stop - 1]) + 1
        contiguous = last - first == stop - start
        if block.ndim == 1 + len(index):
            if contiguous or positions is None:
                return block[(slice(first, last), *index)]
            return self.dense.read_only(block[(slice(None), *index)][positions[start:stop]])
        if contiguous:
            *outer, line = (int(i) for i in np.unravel_index(first, self._nav_shape))
            end = line + stop - start
            if end <= self._nav_shape[-1]:  # all in one scan line
                in_line: tuple[Any, ...] = (*outer, slice(line, end), *index)
                line_of_frames: AnyArray = block[in_line]
                return line_of_frames
        chosen = np.arange(start, stop) if positions is None else positions[start:stop]
        places = np.unravel_index(chosen, self._nav_shape)
        nav = (slice(None),) * len(self._nav_shape)
        return self.dense.read_only(block[(*nav, *index)][places])


def _has_near_frames(block: AnyArray, n_sig: int) -> bool:
    """Return whether frames are nearer in memory than pixels: the scan comes last in the array."""
    steps = [abs(step) if n > 1 else 0 for step, n in zip(block.strides, block.shape, strict=True)]
    nav, sig = (list(filter(None, part)) for part in (steps[:-n_sig], steps[-n_sig:]))
    return bool(nav and sig) and min(nav) < min(sig)


def _bands(index: tuple[slice, ...]) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...]]]:
    """Yield where in a tile, and where in a block, there are bands of at most `_BAND` pixels.

    Each pixel of a block with near frames is in another page of memory. So few pages are in use at
    a time, and all values in a line of the cache are copied before it is replaced. The sums of 36
    MiB take 0.06 s in this way, and 0.4 s if kernels read the block itself.
    """
    steps: list[int] = []
    for span in reversed(index):
        steps.insert(0, max(1, min(span.stop - span.start, _BAND // math.prod(steps))))
    starts = (range(i.start, i.stop, step) for i, step in zip(index, steps, strict=True))
    for corner in itertools.product(*starts):
        there = [
            slice(a, min(a + step, i.stop)) for a, step, i in zip(corner, steps, index, strict=True)
        ]
        here = (
            slice(b.start - i.start, b.stop - i.start) for b, i in zip(there, index, strict=True)
        )
        yield tuple(here), tuple(there)


def _has_lines_of_frames(block: AnyArray) -> bool:
    """Return whether kernels can read many frames of a block without a copy."""
    return bool(block[:1].flags.c_contiguous and block.strides[0] >= 0 and block.flags.aligned)


class SparseSource(FrameSource):
    """The selected frames of a chunk whose blocks are sparse arrays or matrices."""

    backend: SparseBackend

    def _read(self, block: Any) -> SparseRows:
        nav_dims = len(self._nav_shape)
        if self.backend.is_matrix and nav_dims != 1:
            raise UDFError(
                f"a matrix of type {type(block).__name__} came, in which each row is a frame, but "
                f"chunks have {nav_dims} navigation dimensions: use sparse.GCXS"
            )
        rows = self.backend.frames(block, nav_dims)
        return rows if self._positions is None else rows.take(self._positions)

    def tile(self, start: int, stop: int, number: int, index: tuple[slice, ...]) -> AnyArray:
        """Return rows `start` to `stop` of block `number`, cut to `index` in the signal, dense."""
        rows: SparseRows = self._blocks[number]
        first, ends = zip(
            *(i.indices(n)[:2] for i, n in zip(index, rows.sig, strict=True)), strict=True
        )
        shape = tuple(b - a for a, b in zip(first, ends, strict=True))
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
        return self.dense.read_only(tile[(*(slice(None),) * (lead + 2), *index[lead + 1 :])])

    def shifted(self, shifts: FrameShifts) -> SparseSource:
        """Return a source of the frames, shifted by whole pixels, as one block of full frames."""
        backend: SparseBackend = self._blocks[0].backend  # dictionaries of keys became COO
        rows = backend.frames_of_stack(self.sparse(0, len(self._blocks[0])))
        csr, shape = rows.csr, (len(rows), *self._sig)
        entries = moved_entries(csr.data, csr.indices, csr.indptr, shifts.whole, self._sig)
        moved = csr_rows(type(csr), *entries, csr.shape[1])
        source = copy.copy(self)
        source._blocks = [backend.frames_of_stack(to_backend(moved, backend, shape))]
        source._sig_chunks = tuple((n,) for n in self._sig)
        return source

    def sparse(self, start: int, stop: int, number: int | None = None) -> Any:
        """Return rows of block `number`, or of full frames, in the backend of the data."""
        blocks = self._blocks if number is None else [self._blocks[number]]
        parts = [block.rows(start, stop) for block in blocks]
        if len(parts) == 1:
            return parts[0]
        backend: SparseBackend = self._blocks[0].backend
        return backend.join(parts, [len(sizes) for sizes in self._sig_chunks])


def converted_blocks(blocks: Sequence[Any], kinds: Sequence[Backend]) -> list[Any]:
    """Return all blocks in the backend of the first one, after checks of their values."""
    converted = []
    for block, kind in zip(blocks, kinds, strict=True):
        plain = block
        if type(block) is not np.ndarray:  # of a NumPy array, only shape and dtype can be wrong
            plain = plain_block(block, "a chunk")
            if fill_value(plain) != 0:
                raise UDFError(
                    f"a sparse chunk came with the fill value {fill_value(plain)!r}, expected 0: "
                    "values that are not stored must be 0"
                )
        converted.append(plain if kind == kinds[0] else to_backend(plain, kinds[0], plain.shape))
    return converted
