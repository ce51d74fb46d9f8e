"""Run a UDF with a halo over boxes of scan positions: window by window, or vectorized."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from udfdask.backends.backend import DenseBackend, locked
from udfdask.chunk.dense_tiles import DenseCutter
from udfdask.chunk.frames import DenseSource
from udfdask.chunk.neighborhoods.stored_frames import AuxStores, Stores, aux_window, window_of
from udfdask.chunk.udf_instance import Instance
from udfdask.geometry.halo import Box, Halo, slabs
from udfdask.plan.recipe import DESCAN, Recipe
from udfdask.types import AnyArray
from udfdask.udf import UDFMethod
from udfdask.udf.meta import Neighborhood

if TYPE_CHECKING:
    from udfdask.descan.shift_tile import FrameShifts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Neighbors:
    """All that the windows of some positions are made of."""

    frames: Stores
    """Frames by chunk."""
    aux: AuxStores
    """Aux data of kind nav, for each of `recipe.aux_slots`."""

    @property
    def backend(self) -> DenseBackend:
        """Dense array backend of the frames."""
        return next(iter(self.frames.values()))[0].backend


def process_boxes(
    instance: Instance, boxes: Sequence[Box], chunk: int, neighbors: Neighbors
) -> None:
    """Run the processing method of a UDF over the selected positions of some boxes of a chunk."""
    halo = instance.declared.halo
    assert halo is not None
    for box in boxes:
        for slab in _slabs(instance, halo, box, neighbors):
            _process_slab(instance, halo, slab, chunk, neighbors)
    instance.cursor.picked = instance.cursor.neighborhood = None


def _slabs(instance: Instance, halo: Halo, box: Box, neighbors: Neighbors) -> Iterator[Box]:
    """Yield boxes whose windows are made at a time: all at once if the window is a view."""
    recipe = instance.recipe
    if _is_view(instance, halo, box, neighbors):
        yield box
        return
    itemsize = max(recipe.dtype.itemsize, instance.declared.input_dtype.itemsize)
    for slab in slabs(halo, box, recipe.shape.sig.size * itemsize):
        chosen = recipe.grid.selected_box(slab)
        if chosen is not None:
            yield chosen


def _is_view(instance: Instance, halo: Halo, box: Box, neighbors: Neighbors) -> bool:
    """Return whether a window of frames needs no copy."""
    recipe = instance.recipe
    part, *more = halo.pieces(box, recipe.grid)
    return (
        not more
        and not _changes(instance, neighbors)
        and recipe.grid.usable(halo.in_roi) is None
        and recipe.n_blocks == 1
        and isinstance(neighbors.frames[part.chunk][0].blocks[0], np.ndarray)
        and recipe.dtype == instance.declared.input_dtype
        and math.prod(b - a for a, b in part.source) == math.prod(halo.around(box))
    )


def _changes(instance: Instance, neighbors: Neighbors) -> bool:
    """Return whether frames are corrected, shifted or moved to another device."""
    recipe = instance.recipe
    return (
        recipe.corrections is not None
        or recipe.descan is not None
        or instance.dense != neighbors.backend
    )


def _process_slab(
    instance: Instance, halo: Halo, box: Box, chunk: int, neighbors: Neighbors
) -> None:
    """Run the processing method of a UDF over the selected positions of a box."""
    grid = instance.recipe.grid
    exists = halo.exists(box, grid)
    frames = _frames(instance, halo, box, exists, neighbors)
    selected = np.ones(tuple(b - a for a, b in box), dtype=bool)
    if grid.roi is not None:
        selected = grid.roi[tuple(slice(*span) for span in box)]
    aux = {
        name: aux_window(neighbors.aux[k], halo, box, grid)
        for k, (number, name) in enumerate(instance.recipe.aux_slots)
        if number == instance.number
    }
    rows = _rows(instance, box, chunk)
    instance.cursor.part, instance.cursor.part_index = None, 0
    if instance.declared.method is UDFMethod.NEIGHBORHOOD:
        _process_windows(instance, halo, frames, exists, selected, aux, rows)
    else:
        _process_partition(instance, halo, box, chunk, frames, exists, selected, aux, rows)


def _rows(instance: Instance, box: Box, chunk: int) -> AnyArray:
    """Return the row in the chunk of each position of a box; of selected positions only."""
    grid = instance.recipe.grid
    start, shape = grid.bounds(chunk)
    mask = grid.mask(chunk)
    flat = np.arange(math.prod(shape)) if mask is None else np.cumsum(mask) - 1
    window = tuple(slice(a - s, b - s) for (a, b), s in zip(box, start, strict=True))
    rows: AnyArray = flat.reshape(shape)[window]
    return rows


def _frames(
    instance: Instance, halo: Halo, box: Box, exists: AnyArray, neighbors: Neighbors
) -> AnyArray:
    """Return the frames of a window as the UDF is given them, read-only; missing ones are 0."""
    recipe, dense = instance.recipe, instance.dense
    dtype, shape = instance.declared.input_dtype, halo.around(box)
    grid, in_roi = recipe.grid, halo.in_roi
    leaves_out = grid.usable(in_roi) is not None  # absent frames, or those outside of a region
    parts = [p for p in halo.pieces(box, grid) if grid.has_usable(p.chunk, in_roi)]
    raw = window_of(neighbors.frames, parts, shape, recipe.dtype)
    missing = np.flatnonzero(~exists)
    if _changes(instance, neighbors):
        raw = _changed(instance, halo, box, raw, neighbors)
        raw = raw.reshape((*shape, *raw.shape[1:]))
    elif raw.dtype != dtype:
        raw = raw.astype(dtype)
    elif not (leaves_out and missing.size):
        return dense.read_only(raw)  # frames that do not exist are 0 already
    if missing.size and (leaves_out or recipe.makes_dense or recipe.descan is not None):
        raw = dense.own_copy(raw, dtype)
        raw[np.unravel_index(missing, shape)] = 0
    return dense.read_only(raw)


def _changed(
    instance: Instance, halo: Halo, box: Box, raw: AnyArray, neighbors: Neighbors
) -> AnyArray:
    """Return corrected, shifted and moved frames in the dtype of a UDF, shape (frames, *sig)."""
    recipe, shape = instance.recipe, halo.around(box)
    n, sig = math.prod(shape), tuple(recipe.shape.sig)
    flat = raw.reshape((n, *sig))
    whole = tuple((size,) for size in sig)
    source = DenseSource([flat], neighbors.backend, (n,), whole, None, flat.dtype)
    shifts = _shifts(recipe, halo, box, neighbors.aux, sig)
    cutter = DenseCutter(source, recipe.tiling.uncut, shifts, recipe.corrections is not None)
    changed: AnyArray = cutter.frames(0, n).get(instance)
    return changed


def _shifts(
    recipe: Recipe, halo: Halo, box: Box, aux: AuxStores, sig: tuple[int, ...]
) -> FrameShifts | None:
    """Return the shifts of the frames of a window; None if frames are not shifted."""
    descan = recipe.descan
    if descan is None:
        return None
    from udfdask.descan.shift_tile import FrameShifts  # few runs need it

    place = recipe.aux_slots.index((DESCAN, "shifts"))
    values = aux_window(aux[place], halo, box, recipe.grid)
    rows = values.reshape((-1, len(sig)))
    return FrameShifts(rows, sig, subpixel=descan.subpixel, fill=descan.fill)


def _process_windows(
    instance: Instance,
    halo: Halo,
    frames: AnyArray,
    exists: AnyArray,
    selected: AnyArray,
    aux: dict[str, AnyArray],
    rows: AnyArray,
) -> None:
    """Run `process_neighborhood` for each selected position."""
    cursor, udf = instance.cursor, instance.udf
    results, params = udf.results.__dict__, udf.params.__dict__
    buffers = [
        (name, instance.arrays[name] if spec.extra_shape else instance.arrays[name][:, np.newaxis])
        for name, spec in instance.declared.allocated.items()
        if spec.kind == "nav"
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


def _process_partition(
    instance: Instance,
    halo: Halo,
    box: Box,
    chunk: int,
    frames: AnyArray,
    exists: AnyArray,
    selected: AnyArray,
    aux: dict[str, AnyArray],
    rows: AnyArray,
) -> None:
    """Run `process_partition` once; nav buffers have the shape of the positions."""
    cursor, udf = instance.cursor, instance.udf
    chosen = rows[selected]
    cursor.picked = chosen
    cursor.neighborhood = Neighborhood(locked(exists), halo.core(box), locked(selected))
    in_place = vars(type(udf)).get("_writes_strided", False)
    views: dict[str, AnyArray] = {}
    for name, spec in instance.declared.allocated.items():
        if spec.kind == "nav":
            whole = _place(instance, name, box, chunk)
            if whole is None:
                views[name] = _spread(instance.arrays[name], rows, selected)
            else:
                views[name] = whole if in_place else whole.copy()
    udf.results.__dict__.update(views)
    udf.params.__dict__.update(aux)
    if instance.writable_input:
        frames = instance.dense.own_copy(frames, frames.dtype)
    instance.call("process_partition", frames)
    for name, view in views.items():
        whole = _place(instance, name, box, chunk)
        if whole is None:
            instance.arrays[name][chosen] = view[selected]
        elif not in_place:
            whole[...] = view


def _place(instance: Instance, name: str, box: Box, chunk: int) -> AnyArray | None:
    """Return a view of the rows of a box in a nav buffer; None if some are not selected."""
    grid = instance.recipe.grid
    if grid.mask(chunk) is not None:
        return None
    array, (start, shape) = instance.arrays[name], grid.bounds(chunk)
    cuts = (slice(a - s, b - s) for (a, b), s in zip(box, start, strict=True))
    # the ellipsis keeps an array where there are no axes: a scan of a single frame
    window: tuple[Any, ...] = (*cuts, ...)
    view: AnyArray = array.reshape((*shape, *array.shape[1:]))[window]
    return view


def _spread(array: AnyArray, rows: AnyArray, selected: AnyArray) -> AnyArray:
    """Return the rows of selected positions in the shape of all positions, the others 0."""
    spread: Any = np.zeros_like(array, shape=(*rows.shape, *array.shape[1:]))
    spread[selected] = array[rows[selected]]
    return spread  # type: ignore[no-any-return]
