"""Arrange the frames of an array in another scan: each frame is copied at most once.

Each new block is made by one task of the blocks that contain its frames. dask's own functions
would flatten the scan, which joins chunks until they have whole rows of it.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from udfdask.backends.table import backend_of
from udfdask.errors import ArgumentTypeError
from udfdask.geometry.chunk_grid import IntArray, as_index, as_range
from udfdask.geometry.roi import ABSENT_LAYER
from udfdask.graph.dask_internals.arrays import graph_array, make_array
from udfdask.graph.dask_internals.layers import ListedTasks
from udfdask.graph.dask_internals.tasks import List, Task, TaskRef
from udfdask.io.lazy_source import Chunks

Piece = tuple[tuple[int, ...], Any, Any]
"""The position of a block along the navigation axes, an index of these axes that gives some of its
frames, and their places in the new block, in C order."""


def arrange(array: Any, n_nav: int, nav_chunks: Chunks, offset: int) -> Any:
    """Return an array of the same frames in a scan with other chunks and perhaps another shape.

    Position k of the new scan has frame ``k + offset``, both counted in C order; where there is no
    such frame, it has zeros. `n_nav` is the number of navigation axes of `array`.
    """
    array = graph_array(array)
    if backend_of(array._meta).is_sparse:
        raise ArgumentTypeError(
            f"the frames are {type(array._meta).__name__} chunks, and sparse frames cannot be put "
            "at other positions of a scan: make them dense with map_blocks, or store them with all "
            "positions of the scan"
        )
    n_old, n_new = (math.prod(map(sum, axes)) for axes in (array.chunks[:n_nav], nav_chunks))
    is_complete = offset >= 0 and n_new + offset <= n_old
    prefix = "in-scan-" if is_complete else ABSENT_LAYER
    name = f"{prefix}{tokenize(array.name, n_nav, nav_chunks, offset)}"
    sig_chunks = array.chunks[n_nav:]
    sig_blocks = list(itertools.product(*(enumerate(sizes) for sizes in sig_chunks)))
    tasks: dict[Any, Task] = {}
    for place, numbers in _numbers(nav_chunks):
        pieces = _pieces(numbers + offset, array.chunks[:n_nav])
        shape = tuple(axis[k] for axis, k in zip(nav_chunks, place, strict=True))
        for sig in sig_blocks:
            behind = tuple(k for k, _ in sig)
            key = (name, *place, *behind)
            blocks = [TaskRef((array.name, *block, *behind)) for block, _, _ in pieces]
            where = [(frames, places) for _, frames, places in pieces]
            full = (*shape, *(size for _, size in sig))
            tasks[key] = Task(
                key, _new_block, List(*blocks), where, full, len(nav_chunks), array._meta
            )
    layers = {**array.dask.layers, name: ListedTasks(tasks)}
    graph = HighLevelGraph(layers, {**array.dask.dependencies, name: {array.name}})
    return make_array(graph, name, (*nav_chunks, *sig_chunks), array._meta)


def _numbers(nav_chunks: Chunks) -> Any:
    """Yield the position of each new block, and the numbers of its positions in C order."""
    shape = [sum(axis) for axis in nav_chunks]
    steps = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    bounds = [list(itertools.accumulate(axis, initial=0)) for axis in nav_chunks]
    for place in itertools.product(*(range(len(axis)) for axis in nav_chunks)):
        numbers = np.zeros(1, dtype=np.intp)
        for step, bound, k in zip(steps, bounds, place, strict=True):
            along = np.arange(bound[k], bound[k + 1], dtype=np.intp) * step
            numbers = (numbers[:, None] + along).reshape(-1)
        yield place, numbers


def _pieces(frames: IntArray, nav_chunks: Chunks) -> list[Piece]:
    """Return where the frames with these numbers are; numbers of no frame are left out."""
    shape = tuple(sum(axis) for axis in nav_chunks)
    places = np.flatnonzero((frames >= 0) & (frames < math.prod(shape)))
    if not len(places):
        return []
    if not shape:  # a single frame without navigation axes
        return [((), (), as_index(as_range(places)))]
    positions = np.unravel_index(frames[places], shape)
    bounds = [np.cumsum((0, *axis)) for axis in nav_chunks]
    along = [
        np.searchsorted(bound, at, side="right") - 1
        for bound, at in zip(bounds, positions, strict=True)
    ]
    numblocks = tuple(len(axis) for axis in nav_chunks)
    blocks = np.ravel_multi_index(tuple(along), numblocks)
    pieces: list[Piece] = []
    for block in np.unique(blocks):
        own = np.flatnonzero(blocks == block)
        at = tuple(int(k) for k in np.unravel_index(block, numblocks))
        inside = [
            position[own] - bound[k]
            for position, bound, k in zip(positions, bounds, at, strict=True)
        ]
        index = (as_index(as_range(inside[0])),) if len(inside) == 1 else tuple(inside)
        pieces.append((at, index, as_index(as_range(places[own]))))
    return pieces


def _new_block(
    blocks: list[Any], where: list[tuple[Any, Any]], shape: tuple[int, ...], n_nav: int, meta: Any
) -> Any:
    """Return a block of frames from other blocks, with zeros where there are none."""
    sig, n_frames = shape[n_nav:], math.prod(shape[:n_nav])
    if len(blocks) == 1 and where[0][1] == slice(0, n_frames) and _is_run(where[0][0]):
        return blocks[0][where[0][0] or None].reshape(shape)
    home = backend_of(meta).dense
    with home.at_work(own_stream=False):
        made = home.namespace().zeros((n_frames, *sig), dtype=meta.dtype)
        for block, (frames, places) in zip(blocks, where, strict=True):
            made[places] = block[frames or None]
        return made.reshape(shape)


def _is_run(frames: tuple[Any, ...]) -> bool:
    """Return whether frames of a block can be a view of it."""
    return all(isinstance(part, slice) for part in frames)
