"""Dask arrays that are derived from results: flat rows and valid masks, made on request."""

from __future__ import annotations

import itertools
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from udfdask.backends.backend import DenseBackend
from udfdask.backends.table import backend_of, namespace_of
from udfdask.geometry.chunk_grid import BoolArray, Grid
from udfdask.graph.dask_internals.arrays import GraphArray
from udfdask.graph.dask_internals.layers import TaskLayer
from udfdask.graph.dask_internals.tasks import List, Task, TaskRef
from udfdask.types import AnyArray


def flat_rows(array: da.Array, grid: Grid) -> da.Array:
    """Flatten the navigation axes of a nav result and keep the rows of the ROI, in C order.

    One block holds a band of the scan: all chunks with the same index on the first axis. dask's own
    `reshape` and boolean indexing would rechunk, and give chunks of unknown size.
    """
    n_nav = len(grid.shape)
    name = f"rows-{tokenize(array.name, grid)}"
    extra = array.chunks[n_nav:]
    bands = grid.nav_chunks[0] if n_nav else (1,)
    inner = grid.numblocks[1:]
    tasks: dict[Any, Task] = {}
    lengths = []
    for band, size in enumerate(bands):
        first = sum(bands[:band])
        mask = grid.roi  # a mask of shape () selects or drops the only frame
        if mask is not None and n_nav:
            mask = mask[first : first + size]
        first_index = (band,) if n_nav else ()
        refs = [
            TaskRef((array.name, *first_index, *rest, *(0 for _ in extra)))
            for rest in itertools.product(*map(range, inner))
        ]
        key = (name, band, *(0 for _ in extra))
        tasks[key] = Task(key, _band, List(*refs), inner, n_nav, mask)
        n_frames = size * int(np.prod(grid.shape[1:])) if n_nav else 1
        lengths.append(n_frames if mask is None else int(np.count_nonzero(mask)))
    layers = {**array.dask.layers, name: TaskLayer(tasks)}
    graph = HighLevelGraph(layers, {**array.dask.dependencies, name: {array.name}})
    meta = namespace_of(array._meta).empty((0,) * (1 + len(extra)), dtype=array.dtype)
    return GraphArray(graph, name, (tuple(lengths), *extra), meta=meta)


def _band(
    blocks: list[AnyArray], inner: tuple[int, ...], n_nav: int, mask: BoolArray | None
) -> AnyArray:
    """Join the blocks of a band and return their selected rows."""
    for axis in range(n_nav - 1, 0, -1):
        n = inner[axis - 1]
        blocks = [np.concatenate(blocks[k : k + n], axis=axis) for k in range(0, len(blocks), n)]
    (band,) = blocks
    if mask is not None:
        return band[mask]
    rows = int(np.prod(band.shape[:n_nav]))
    return band.reshape((rows, *band.shape[n_nav:]))


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
    """Return a block in the backend of a result."""
    with home.at_work(own_stream=False):
        return home.from_host(block)
