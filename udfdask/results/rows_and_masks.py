"""Dask arrays that are derived from results: flat rows and valid masks, made on request."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize

from udfdask.backends.backend import DenseBackend
from udfdask.backends.table import backend_of, namespace_of
from udfdask.base.types import AnyArray
from udfdask.geometry.chunk_grid import BoolArray, Grid


def flat_rows(array: da.Array, grid: Grid) -> da.Array:
    """Flatten the navigation axes of a nav result and keep the rows of the ROI, in C order.

    One block holds a band of the scan: all chunks with the same index on the first axis. dask's own
    `reshape` and boolean indexing would rechunk, and give chunks of unknown size.
    """
    roi, chunks = grid.roi, grid.nav_chunks
    roi = np.ones(grid.shape, dtype=bool) if roi is None else roi
    if not grid.shape:
        array, roi, chunks = array[None], roi[None], ((1,),)
    nav, extra = tuple(range(roi.ndim)), tuple(range(roi.ndim, array.ndim))
    ends = np.cumsum(chunks[0])
    lengths = tuple(
        int(np.count_nonzero(roi[end - n : end])) for end, n in zip(ends, chunks[0], strict=True)
    )
    rows: da.Array = da.blockwise(
        _selected,
        (0, *extra),
        array,
        (*nav, *extra),
        da.from_array(roi, chunks=chunks),
        nav,
        name=f"rows-{tokenize(array.name, grid)}",
        concatenate=True,
        adjust_chunks={0: lengths},
        meta=namespace_of(array._meta).empty((0,) * (1 + len(extra)), dtype=array.dtype),
    )
    return rows


def _selected(band: AnyArray, mask: BoolArray) -> AnyArray:
    return band[mask]


def default_mask(array: da.Array, grid: Grid, is_nav: bool) -> da.Array:
    """Return the valid mask of a result if the UDF gives none: True everywhere in the ROI."""
    if not is_nav or grid.roi is None:
        everywhere: da.Array = da.ones(array.shape, dtype=bool, chunks=array.chunks)
        return _on_device_of(array, everywhere)
    mask = da.from_array(grid.roi, chunks=grid.nav_chunks)
    extra = array.ndim - mask.ndim
    mask = mask[(..., *(None,) * extra)]
    full = da.broadcast_to(mask, array.shape, chunks=array.chunks)
    return _on_device_of(array, full)


def _on_device_of(array: da.Array, mask: da.Array) -> da.Array:
    """Move the blocks of a mask to the device if the blocks of an array are there."""
    home = backend_of(array._meta).dense
    if not home.on_device:
        return mask
    meta = home.namespace().empty((0,) * mask.ndim, dtype=bool)
    moved: da.Array = da.map_blocks(_move_block, mask, home, dtype=bool, meta=meta)
    return moved


def _move_block(block: AnyArray, home: DenseBackend) -> Any:
    with home.at_work(own_stream=False):
        return home.from_host(block)
