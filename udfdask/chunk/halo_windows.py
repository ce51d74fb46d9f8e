"""Run a UDF with a halo over boxes of scan positions: window by window, or vectorized.

Windows are made of frames and aux data that are stored by chunk: those of the chunk itself, and
margins of its neighbors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np

from udfdask.backends.backend import DenseBackend, locked
from udfdask.backends.sparse_rows import SparseRows
from udfdask.base.types import AnyArray
from udfdask.chunk.dense_tiles import Cutter
from udfdask.chunk.frames import DenseSource, signal_windows
from udfdask.chunk.partial_result import Sized
from udfdask.chunk.udf_instance import Instance
from udfdask.corrections.shift_tile import FrameShifts
from udfdask.geometry.halo import Box, Halo, Piece, box_of, slabs
from udfdask.plan.recipe import DESCAN
from udfdask.udf import UDFMethod
from udfdask.udf.meta import Neighborhood


def _within(box: Box, held: Box) -> tuple[slice, ...]:
    return tuple(
        slice(first - start, stop - start)
        for (first, stop), (start, _) in zip(box, held, strict=True)
    )


def _shape(box: Box) -> tuple[int, ...]:
    return tuple(stop - first for first, stop in box)


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

    def holds(self, box: Box) -> bool:
        """Return whether it has the frames of a box."""
        return all(
            start <= first and stop <= end
            for (first, stop), (start, end) in zip(box, self.box, strict=True)
        )

    def part(self, box: Box, *, copy: bool = False) -> StoredFrames:
        """Return some of the frames; dense ones are a view, of which only these are sent.

        A `copy` keeps nothing else in memory.
        """
        blocks = []
        for block in self.blocks:
            cut = self._cut(block, box)
            dense = not isinstance(block, SparseRows)
            blocks.append(self.backend.own_copy(cut, cut.dtype) if copy and dense else cut)
        return replace(self, box=box, blocks=tuple(blocks))

    def dense(self, box: Box, dtype: np.dtype[Any]) -> AnyArray:
        """Return some of the frames, shape (*box, *sig): a view if they are dense and not cut."""
        parts = [self._cut(block, box) for block in self.blocks]
        for k, part in enumerate(parts):
            if isinstance(part, SparseRows):
                dense = part.dense(0, len(part), 0, math.prod(part.sig))
                parts[k] = dense.reshape((*_shape(box), *part.sig))
        if len(parts) == 1:
            return cast(AnyArray, parts[0])
        joined = self.backend.empty((*_shape(box), *map(sum, self.sig_chunks)), dtype)
        for window, part in zip(signal_windows(self.sig_chunks), parts, strict=True):
            place: Any = (..., *window)
            joined[place] = part
        return joined

    def _cut(self, block: Any, box: Box) -> Any:
        """Return some frames of one signal chunk."""
        where = _within(box, self.box)
        if not isinstance(block, SparseRows):
            return block[where]
        shape = _shape(self.box)
        return block.take(np.arange(math.prod(shape)).reshape(shape)[where].reshape(-1))


Index = tuple[int, ...]
"""Place of a chunk in dask's grid of chunks."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Neighbors:
    """All that the windows of some positions are made of."""

    frames: Mapping[Index, Sequence[StoredFrames]]
    """Frames by chunk."""
    aux: Mapping[Index, Sequence[AnyArray | None]]
    """By chunk, the values for each of `recipe.aux_slots`, shape (*nav part, *extra_shape)."""

    @property
    def backend(self) -> DenseBackend:
        """Dense array backend of the frames."""
        return next(iter(self.frames.values()))[0].backend

    def window(
        self, pieces: Sequence[Piece], shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> AnyArray:
        """Return a window of frames, shape (*shape, *sig), made of pieces; missing frames are 0.

        It is a view if one piece fills it.
        """
        n_frames = sum(math.prod(_shape(piece.source)) for piece in pieces)
        window: AnyArray | None = None
        for piece in pieces:
            store = next(s for s in self.frames[piece.chunk] if s.holds(piece.source))
            values = store.dense(piece.source, dtype)
            if values.shape[: len(shape)] == shape:
                return values
            if window is None:
                window = self.backend.empty((*shape, *values.shape[len(shape) :]), dtype)
                if n_frames < math.prod(shape):
                    window[...] = 0
            window[piece.place] = values
        assert window is not None  # the position in the middle of a window exists
        return window


class _Slab(NamedTuple):
    """What a UDF is given for some positions: frames and aux data with a margin."""

    frames: AnyArray
    exists: AnyArray
    selected: AnyArray
    aux: dict[str, AnyArray]
    rows: AnyArray
    """The row in the chunk of each position, of selected positions only."""


class BoxRun:
    """Runs the processing method of a UDF over the selected positions of boxes of a chunk."""

    def __init__(self, instance: Instance, chunk: int, neighbors: Neighbors) -> None:
        halo, recipe = instance.declared.halo, instance.recipe
        assert halo is not None
        self._halo: Halo = halo
        self._instance = instance
        self._recipe = recipe
        self._grid = recipe.grid
        self._chunk = chunk
        self._neighbors = neighbors
        # absent frames, or those outside of a region, are left out
        self._leaves_out = recipe.grid.usable(halo.in_roi) is not None
        self._changes = (
            recipe.corrections is not None
            or recipe.descan is not None
            or instance.dense != neighbors.backend
        )

    def process(self, boxes: Sequence[Box]) -> None:
        """Run the UDF over the selected positions of some boxes of the chunk."""
        cursor = self._instance.cursor
        cursor.part, cursor.part_index = None, 0
        for box in boxes:
            for slab in self._slabs(box):
                self._process_slab(slab)
        cursor.picked = cursor.neighborhood = None

    def _slabs(self, box: Box) -> Iterator[Box]:
        """Yield boxes whose windows are made at a time: all at once if the window is a view."""
        recipe, dtype = self._recipe, self._instance.declared.input_dtype
        piece, *more = self._halo.pieces(box, self._grid)
        if not (more or self._changes or self._leaves_out or recipe.n_blocks > 1):
            block = self._neighbors.frames[piece.chunk][0].blocks[0]
            fills = _shape(piece.source) == self._halo.around(box)
            if fills and isinstance(block, np.ndarray) and recipe.dtype == dtype:
                yield box
                return
        itemsize = max(recipe.dtype.itemsize, dtype.itemsize)
        for slab in slabs(self._halo, box, recipe.shape.sig.size * itemsize):
            chosen = self._grid.selected_box(slab)
            if chosen is not None:
                yield chosen

    def _process_slab(self, box: Box) -> None:
        """Run the UDF over the selected positions of a box."""
        grid, instance = self._grid, self._instance
        exists = self._halo.exists(box, grid)
        frames = self._frames(box, exists)
        selected = np.ones(_shape(box), dtype=bool)
        if grid.roi is not None:
            selected = grid.roi[tuple(slice(*span) for span in box)]
        aux = {
            name: self._aux(k, box)
            for k, (number, name) in enumerate(self._recipe.aux_slots)
            if number == instance.number
        }
        (start, shape), mask = grid.bounds(self._chunk), grid.mask(self._chunk)
        flat = np.arange(math.prod(shape)) if mask is None else np.cumsum(mask) - 1
        rows = flat.reshape(shape)[_within(box, tuple((first, 0) for first in start))]
        slab = _Slab(frames, exists, selected, aux, rows)
        if instance.declared.method is UDFMethod.NEIGHBORHOOD:
            self._run_windows(slab)
        else:
            self._run_partition(box, slab)

    def _frames(self, box: Box, exists: AnyArray) -> AnyArray:
        """Return the frames of a window as the UDF is given them, read-only; missing ones are 0."""
        recipe, dense, halo = self._recipe, self._instance.dense, self._halo
        dtype, shape = self._instance.declared.input_dtype, halo.around(box)
        pieces = [
            piece
            for piece in halo.pieces(box, self._grid)
            if self._grid.has_usable(piece.chunk, halo.in_roi)
        ]
        raw = self._neighbors.window(pieces, shape, recipe.dtype)
        missing = np.flatnonzero(~exists)
        if self._changes:
            raw = self._changed(box, raw)
            raw = raw.reshape((*shape, *raw.shape[1:]))
        elif raw.dtype != dtype:
            raw = raw.astype(dtype)
        elif not (self._leaves_out and missing.size):
            return dense.read_only(raw)  # frames that do not exist are 0 already
        if missing.size and (self._leaves_out or recipe.makes_dense or recipe.descan is not None):
            raw = dense.own_copy(raw, dtype)
            raw[np.unravel_index(missing, shape)] = 0
        return dense.read_only(raw)

    def _changed(self, box: Box, raw: AnyArray) -> AnyArray:
        """Return corrected, shifted and moved frames in the dtype of a UDF."""
        recipe, descan = self._recipe, self._recipe.descan
        n, sig = math.prod(self._halo.around(box)), tuple(recipe.shape.sig)
        whole = tuple((size,) for size in sig)
        flat = raw.reshape((n, *sig))
        source = DenseSource([flat], self._neighbors.backend, (n,), whole, None, flat.dtype)
        shifts: FrameShifts | None = None
        if descan is not None:
            values = self._aux(recipe.aux_slots.index((DESCAN, "shifts")), box)
            rows = values.reshape((-1, len(sig)))
            shifts = FrameShifts(rows, sig, subpixel=descan.subpixel, fill=descan.fill)
        corrected = recipe.corrections is not None
        cutter = Cutter(source, recipe.tiling.uncut, shifts, corrected=corrected)
        changed: AnyArray = cutter.reader()(0, n).get(self._instance)
        return changed

    def _aux(self, slot: int, box: Box) -> AnyArray:
        """Return aux data of a window around some positions, read-only; 0 where there is none."""
        stores = {index: values[slot] for index, values in self._neighbors.aux.items()}
        first = next(iter(stores.values()))
        assert first is not None
        window = np.zeros((*self._halo.around(box), *first.shape[len(box) :]), first.dtype)
        for piece in self._halo.pieces(box, self._grid):
            values = stores.get(piece.chunk)
            if values is not None:
                place = _within(piece.source, box_of(self._grid, piece.chunk))
                window[piece.place] = values[place]
        return locked(window)

    def _run_windows(self, slab: _Slab) -> None:
        frames, exists, selected, aux, rows = slab
        instance, halo = self._instance, self._halo
        cursor, udf = instance.cursor, instance.udf
        results, params = udf.results.__dict__, udf.params.__dict__
        buffers = [
            (name, array if extra_shape else array[:, np.newaxis])
            for shown, name, array, extra_shape in instance.by_row
            if shown is results
        ]
        core = halo.core(((0, 1),) * len(halo.sides))
        core_mask = np.ones((1,) * len(halo.sides), dtype=bool)
        for position in zip(*np.nonzero(selected), strict=True) if selected.ndim else [()]:
            window = tuple(slice(p, p + n) for p, n in zip(position, halo.window, strict=True))
            row = int(rows[position])
            cursor.start, cursor.stop = row, row + 1
            cursor.neighborhood = Neighborhood(locked(exists[window]), core, core_mask)
            for name, array in buffers:
                results[name] = array[row]
            for name, values in aux.items():
                params[name] = values[window]
            around: Any = frames[window]
            if instance.writable_input:
                around = instance.dense.own_copy(around, around.dtype)
            instance.call("process_neighborhood", around)

    def _run_partition(self, box: Box, slab: _Slab) -> None:
        """Run `process_partition` once; nav buffers have the shape of the positions."""
        frames, exists, selected, aux, rows = slab
        instance = self._instance
        cursor, udf, results = instance.cursor, instance.udf, instance.udf.results.__dict__
        chosen = rows[selected]
        cursor.picked = chosen
        cursor.neighborhood = Neighborhood(locked(exists), self._halo.core(box), locked(selected))
        all_selected = self._grid.mask(self._chunk) is None
        in_place = all_selected and vars(type(udf)).get("_writes_strided", False)
        copies: list[tuple[AnyArray, AnyArray]] = []
        for shown, name, array, _ in instance.by_row:
            if shown is not results:
                continue
            if in_place:
                start, shape = self._grid.bounds(self._chunk)
                # the ellipsis keeps an array where there are no axes: a scan of a single frame
                place: Any = (*_within(box, tuple((first, 0) for first in start)), ...)
                results[name] = array.reshape((*shape, *array.shape[1:]))[place]
            else:
                view: Any = np.zeros_like(array, shape=(*rows.shape, *array.shape[1:]))
                view[selected] = array[chosen]
                results[name] = view
                copies.append((array, view))
        udf.params.__dict__.update(aux)
        if instance.writable_input:
            frames = instance.dense.own_copy(frames, frames.dtype)
        instance.call("process_partition", frames)
        for array, view in copies:
            array[chosen] = view[selected]
