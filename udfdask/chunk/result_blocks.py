"""Put results in data set shape: as blocks of dask arrays, and as NumPy arrays.

Nothing here needs the recipe of the run: a task that makes a block has its own `Cut` as argument.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from udfdask.backends.backend import NUMPY, DenseBackend
from udfdask.backends.table import in_backend, to_host
from udfdask.base.types import AnyArray
from udfdask.chunk.partial_result import Finalized, Partial
from udfdask.geometry.chunk_grid import BoolArray, Grid, IntArray, as_index
from udfdask.udf.aux_data import concatenate_rows
from udfdask.udf.buffers import BufferSpec

Holder = Partial | Finalized
"""A partial result with merged buffers, or the results of `get_results`."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Where the rows of a chunk are, and the shape of its block."""

    rows: slice | IntArray
    """The rows of the chunk among those of the holder."""
    shape: tuple[int, ...]
    """Navigation shape of the chunk, in frames."""
    mask: BoolArray | None
    """The selected frames of the chunk, flattened; None for all."""


def holder_of(source: Any, number: int) -> Holder:
    """Return the holder of a UDF's results from the value of a task, if that has one per UDF."""
    holder: Holder = source[number] if isinstance(source, tuple) else source
    return holder


def join_rows(sources: Sequence[Any], number: int, names: Sequence[str]) -> Holder:
    """Return some nav buffers of the values of tasks, one after another, and nothing else."""
    holders = [holder_of(source, number) for source in sources]
    first, last = holders[0].chunks, holders[-1].chunks
    assert first is not None
    assert last is not None
    chunks = first[0], last[1]
    arrays = {name: _joined([holder.arrays[name] for holder in holders]) for name in names}
    partials = [holder for holder in holders if isinstance(holder, Partial)]
    if partials:
        return Partial(arrays, *chunks, concatenate_rows([partial.aux for partial in partials]))
    masked = {name for one in holders if isinstance(one, Finalized) for name in one.masks}
    masks = {
        n: _joined([_values_of(one, n, True) for one in holders]) for n in names if n in masked
    }
    return Finalized(arrays, masks, chunks)


def _joined(parts: list[AnyArray]) -> AnyArray:
    """Return rows one after another: on the host, those of a single part as they are."""
    return parts[0] if len(parts) == 1 else np.concatenate([*map(to_host, parts)])


def nav_block(
    source: Any, cut: Cut, number: int, name: str, of_mask: bool, fill: Any, backend: DenseBackend
) -> AnyArray:
    """Return the block of a nav result, or of its valid mask, for one chunk."""
    rows = _values_of(holder_of(source, number), name, of_mask)[cut.rows]
    with backend.at_work(own_stream=False):
        rows = _in_backend(rows, backend)
        extra = rows.shape[1:]
        if cut.mask is None:
            return rows.reshape((*cut.shape, *extra))
        xp = backend_holding(backend, rows.dtype).namespace()
        block: AnyArray = xp.full((cut.mask.size, *extra), fill, dtype=rows.dtype)
        block[np.flatnonzero(cut.mask)] = rows
        return block.reshape((*cut.shape, *extra))


def visited_block(source: object, cut: Cut, backend: DenseBackend) -> AnyArray:
    """Return a block of True after `source`: a UDF without results has processed the chunk."""
    return fill_block(cut.shape, np.dtype(bool), True, backend, source)


def fill_block(
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    fill: Any,
    backend: DenseBackend,
    after: object = None,
) -> AnyArray:
    """Return a block with one value everywhere; `after` is the value of a task that runs first."""
    with backend.at_work(own_stream=False):
        block: AnyArray = backend_holding(backend, dtype).namespace().full(shape, fill, dtype=dtype)
        return block


def reduced_block(
    source: Holder, name: str, of_mask: bool, spec: BufferSpec, backend: DenseBackend
) -> AnyArray:
    """Return the block of a sig or single result, or of its valid mask."""
    with backend.at_work(own_stream=False):
        return _in_backend(_squeezed(spec, _values_of(source, name, of_mask)), backend)


def assemble(
    grid: Grid,
    sig: tuple[int, ...],
    specs: Mapping[str, BufferSpec],
    rows: Sequence[Holder],
    reduced: Holder | None,
    valid: BoolArray | None = None,
) -> tuple[dict[str, AnyArray], dict[str, AnyArray]]:
    """Return the results of a UDF as new NumPy arrays, and their valid masks by name.

    `rows` are holders of nav results, each of some chunks; `reduced` holds sig and single results.
    `valid` has the rows of the run that have been merged. Without it, all rows have been merged,
    and there are masks only after `get_results`.
    """
    arrays: dict[str, AnyArray] = {}
    masks: dict[str, AnyArray] = {}
    for name, spec in specs.items():
        if spec.kind != "nav":
            assert reduced is not None
            arrays[name] = _squeezed(spec, to_host(reduced.arrays[name]).copy())
            if valid is not None or isinstance(reduced, Finalized):
                masks[name] = _squeezed(spec, _values_of(reduced, name, True))
            continue
        # Rows are copied straight to their places in the scan: by way of an array of all rows of
        # the run, 160 MB would be copied twice.
        arrays[name] = _blank(grid, spec)
        flat = arrays[name].reshape((grid.size, *spec.extra_shape))
        places = None if grid.roi is None else np.flatnonzero(grid.roi)
        for holder in rows:
            where = _rows_of(grid, holder)
            flat[where if places is None else places[where]] = to_host(holder.arrays[name])
        finalized = [holder for holder in rows if isinstance(holder, Finalized)]
        if valid is None and not finalized:
            continue
        mask = np.ones(spec.shape(grid.n_frames, sig), dtype=bool)
        if valid is not None:
            mask[~valid] = False
        for holder in finalized:
            if name in holder.masks:
                mask[_rows_of(grid, holder)] = to_host(holder.masks[name])
        masks[name] = in_nav_shape(grid, mask, False)
    return arrays, masks


def _rows_of(grid: Grid, holder: Holder) -> slice | IntArray:
    """Return which rows of the run a holder has."""
    return slice(None) if holder.chunks is None else as_index(grid.rows_of(*holder.chunks))


def _blank(grid: Grid, spec: BufferSpec) -> AnyArray:
    """Return a nav result in navigation shape: zeros, and the fill value outside the ROI."""
    shape = (*grid.shape, *spec.extra_shape)
    if grid.roi is None:
        return np.zeros(shape, dtype=spec.dtype)
    blank = np.full(shape, spec.fill, dtype=spec.dtype)
    blank[grid.roi] = np.zeros((), dtype=spec.dtype)
    return blank


def in_nav_shape(grid: Grid, rows: AnyArray, fill: Any) -> AnyArray:
    """Return rows of the whole run in navigation shape, with `fill` outside the ROI."""
    shape = (*grid.shape, *rows.shape[1:])
    if grid.roi is None:
        return rows.reshape(shape)
    full = np.full(shape, fill, dtype=rows.dtype)
    full[grid.roi] = rows
    return full


def _values_of(source: Holder, name: str, of_mask: bool) -> AnyArray:
    """Return a result, or its valid mask: all valid if the UDF gave none."""
    array = source.arrays[name]
    if not of_mask:
        return array
    mask = source.masks.get(name) if isinstance(source, Finalized) else None
    return np.ones(array.shape, dtype=bool) if mask is None else mask


def _squeezed(spec: BufferSpec, array: AnyArray) -> AnyArray:
    """Return a result in its own shape: a single buffer without extra axes becomes 0-d."""
    return array.reshape(()) if spec.kind == "single" and not spec.extra_shape else array


def _in_backend(block: Any, backend: DenseBackend) -> AnyArray:
    """Return a block in the backend of the run's results, or as NumPy if that lacks the dtype."""
    converted: AnyArray = in_backend(block, backend_holding(backend, block.dtype))
    return converted


def backend_holding(backend: DenseBackend, dtype: np.dtype[Any]) -> DenseBackend:
    """Return the backend of the run's results, or NumPy if that lacks the dtype."""
    return backend if backend.holds(dtype) else NUMPY
