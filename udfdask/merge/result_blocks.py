"""Puts what tasks hold of results in data set shape: blocks of dask arrays, and whole arrays.

Nothing here needs the recipe of the run: a task that cuts out a block carries its own piece of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from udfdask.arrays.backends.backend import DenseBackend
from udfdask.arrays.backends.convert import in_backend, to_host
from udfdask.arrays.backends.dense_backends import NUMPY
from udfdask.arrays.geometry.chunk_grid import BoolArray, Grid, IntArray, as_index
from udfdask.chunk.partial_result import Finalized, Partial
from udfdask.types import AnyArray
from udfdask.udf.buffers import BufferSpec

Holder = Partial | Finalized
"""What holds results: merged buffers, or what `get_results` made of them."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Where the block of a chunk comes from, and its shape."""

    rows: slice | IntArray
    """The rows of the chunk among those of the task that holds them."""
    shape: tuple[int, ...]
    """Navigation shape of the chunk, in frames."""
    mask: BoolArray | None
    """Which frames of the chunk are selected, flat; None for all."""


def holder_of(source: Any, number: int) -> Holder:
    """Return what holds the results of a UDF: the thing itself, or out of a chunk's payload."""
    holder: Holder = source[number] if isinstance(source, tuple) else source
    return holder


def keep_rows(source: Any, number: int, names: Sequence[str]) -> Holder:
    """Return what a task holds of some nav results, without anything else."""
    holder = holder_of(source, number)
    arrays = {name: holder.arrays[name] for name in names}
    if isinstance(holder, Partial):
        return Partial(arrays, holder.first, holder.stop, {})
    masks = {name: mask for name, mask in holder.masks.items() if name in arrays}
    return Finalized(arrays, masks, holder.chunk)


def nav_block(
    source: Any, number: int, name: str, cut: Cut, fill: Any, result_backend: DenseBackend
) -> AnyArray:
    """Return the block of a nav result for one chunk."""
    return _block_of_rows(
        holder_of(source, number).arrays[name][cut.rows], cut, fill, result_backend
    )


def nav_mask_block(
    source: Finalized, name: str, cut: Cut, result_backend: DenseBackend
) -> AnyArray:
    """Return the block of the valid mask of a nav result for one chunk."""
    mask = source.masks.get(name)
    if mask is None:
        mask = np.ones(source.arrays[name].shape, dtype=bool)
    return _block_of_rows(mask[cut.rows], cut, False, result_backend)


def visited_block(source: object, shape: tuple[int, ...], result_backend: DenseBackend) -> AnyArray:
    """Return a block that says that a chunk has been processed by a UDF without results."""
    with result_backend.at_work(own_stream=False):
        return _placed(np.ones(shape, dtype=bool), result_backend)


def fill_block(
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    fill: Any,
    result_backend: DenseBackend = NUMPY,
    after: object = None,
) -> AnyArray:
    """Return the block of a chunk without a selected frame; `after` has to happen before."""
    with result_backend.at_work(own_stream=False):
        block: AnyArray = (
            backend_holding(result_backend, dtype).namespace().full(shape, fill, dtype=dtype)
        )
        return block


def whole_block(
    source: Holder, name: str, spec: BufferSpec, result_backend: DenseBackend
) -> AnyArray:
    """Return the block of a sig or single result."""
    with result_backend.at_work(own_stream=False):
        return _placed(_unboxed(spec, source.arrays[name]), result_backend)


def whole_mask_block(
    source: Finalized, name: str, spec: BufferSpec, result_backend: DenseBackend
) -> AnyArray:
    """Return the block of the valid mask of a sig or single result."""
    with result_backend.at_work(own_stream=False):
        return _placed(_unboxed(spec, _whole_mask(source, name)), result_backend)


def assemble(
    grid: Grid,
    sig: tuple[int, ...],
    specs: Mapping[str, BufferSpec],
    rows: Sequence[Holder],
    whole: Holder | None,
    valid: BoolArray | None = None,
) -> tuple[dict[str, AnyArray], dict[str, AnyArray]]:
    """Return the results of a UDF as new NumPy arrays, and their valid masks by name.

    `rows` hold the nav results, each of some chunks, `whole` the sig and single ones. `valid` says
    which rows of the run have been merged; without it all have been, and only what `get_results`
    made has masks.
    """
    arrays: dict[str, AnyArray] = {}
    masks: dict[str, AnyArray] = {}
    for name, spec in specs.items():
        if spec.kind != "nav":
            assert whole is not None
            arrays[name] = _unboxed(spec, to_host(whole.arrays[name]).copy())
            if valid is not None or isinstance(whole, Finalized):
                masks[name] = _unboxed(spec, _whole_mask(whole, name))
            continue
        shape = spec.shape(grid.n_frames, sig)
        arrays[name] = _blank(grid, spec)
        places = None if grid.roi is None else np.flatnonzero(grid.roi)
        flat = arrays[name].reshape((grid.size, *spec.extra_shape))
        _put(grid, flat, ((holder, holder.arrays[name]) for holder in rows), places)
        finished = [holder for holder in rows if isinstance(holder, Finalized)]
        if valid is None and not finished:
            continue
        mask = np.ones(shape, dtype=bool)
        if valid is not None:
            mask[~valid] = False
        _put(grid, mask, ((h, h.masks[name]) for h in finished if name in h.masks))
        masks[name] = in_nav_shape(grid, mask, False)
    return arrays, masks


def _blank(grid: Grid, spec: BufferSpec) -> AnyArray:
    """Return a nav result in navigation shape: zeros, filled outside of the ROI."""
    shape = (*grid.shape, *spec.extra_shape)
    if grid.roi is None:
        return np.zeros(shape, dtype=spec.dtype)
    blank = np.full(shape, spec.fill, dtype=spec.dtype)
    blank[grid.roi] = np.zeros((), dtype=spec.dtype)
    return blank


def _put(
    grid: Grid,
    target: AnyArray,
    parts: Iterable[tuple[Holder, AnyArray]],
    places: IntArray | None = None,
) -> None:
    """Copy rows, each with what holds them, to their places among those of the run.

    With `places` those are where `target` has each row of the run: rows of 160 MB need not be
    copied twice, first to the run, then to the scan.
    """
    for holder, array in parts:
        where = _places(grid, holder)
        target[where if places is None else places[where]] = to_host(array)


def _places(grid: Grid, holder: Holder) -> slice | IntArray:
    """Return where the rows that are held lie among those of the run."""
    if isinstance(holder, Partial):
        return as_index(grid.rows_of(holder.first, holder.stop))
    return slice(None) if holder.chunk is None else as_index(grid.rows(holder.chunk))


def in_nav_shape(grid: Grid, rows: AnyArray, fill: Any) -> AnyArray:
    """Return rows of the whole run in navigation shape, positions outside the ROI filled."""
    shape = (*grid.shape, *rows.shape[1:])
    if grid.roi is None:
        return rows.reshape(shape)
    full = np.full(shape, fill, dtype=rows.dtype)
    full[grid.roi] = rows
    return full


def _block_of_rows(rows: AnyArray, cut: Cut, fill: Any, result_backend: DenseBackend) -> AnyArray:
    """Return the block of a chunk in data set shape, positions outside the ROI filled."""
    with result_backend.at_work(own_stream=False):
        rows = _placed(rows, result_backend)
        extra = rows.shape[1:]
        if cut.mask is None:
            return rows.reshape((*cut.shape, *extra))
        xp = backend_holding(result_backend, rows.dtype).namespace()
        block: AnyArray = xp.full((cut.mask.size, *extra), fill, dtype=rows.dtype)
        block[np.flatnonzero(cut.mask)] = rows
        return block.reshape((*cut.shape, *extra))


def _whole_mask(source: Holder, name: str) -> AnyArray:
    """Return the valid mask of a sig or single result."""
    mask = source.masks.get(name) if isinstance(source, Finalized) else None
    return np.ones(source.arrays[name].shape, dtype=bool) if mask is None else mask


def _unboxed(spec: BufferSpec, array: AnyArray) -> AnyArray:
    """Return an array; that of a single buffer without extra shape as 0-d."""
    return array.reshape(()) if spec.kind == "single" and not spec.extra_shape else array


def _placed(block: Any, result_backend: DenseBackend) -> AnyArray:
    """Return a block of a result in the backend of the results of the run."""
    placed: AnyArray = in_backend(block, backend_holding(result_backend, block.dtype))
    return placed


def backend_holding(result_backend: DenseBackend, dtype: np.dtype[Any]) -> DenseBackend:
    """Return the backend of results of a dtype in a run whose results are in `result_backend`."""
    return result_backend if result_backend.holds(dtype) else NUMPY
