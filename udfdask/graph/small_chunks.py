"""Join small chunks of an array, without the tasks of a rechunk.

A rechunk keeps a task for each small chunk and adds one for each large chunk. Here the task of a
joined chunk runs the tasks of its small chunks itself, one after another, and copies their blocks
together. Tasks that several joined chunks need, such as an open file, stay tasks.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from udfdask.backends.table import check_block, plain_block
from udfdask.geometry.chunk_grid import BoolArray, Grid
from udfdask.geometry.good_chunks import Chunks
from udfdask.geometry.halo import Halo, loaded_for_others
from udfdask.graph.chunk_layers import PLACED_LAYER
from udfdask.graph.dask_internals.layers import ListedTasks, join_blocks, optimized
from udfdask.graph.dask_internals.tasks import Key, in_one_task, with_other_inputs

SHARED = -1
"""Stands for the number of a joined chunk, for tasks that more than one of them needs."""


def join_small_chunks(
    array: da.Array, chunks: Chunks, grid: Grid, halos: Sequence[Halo] = ()
) -> da.Array:
    """Return the same array with larger chunks, each of which is one task.

    Each of `chunks` consists of whole chunks of the array. Chunks of NumPy arrays are not loaded
    if no frame of them is selected in `grid` or a neighbor of a selected one in the window of
    `halos`: zeros take their place.
    """
    wanted = _wanted_blocks(array, grid, halos)
    # the search for placements reads the names of layers first, and those of the array are lost
    prefix = PLACED_LAYER if any(PLACED_LAYER in str(layer) for layer in array.dask.layers) else ""
    name = f"{prefix}joined-{tokenize(array.name, chunks, wanted)}"
    boxes = dict(_boxes(array.chunks, chunks))
    keys = {
        place: [(array.name, *block) for block in _blocks(box, wanted)]
        for place, box in boxes.items()
    }
    keys = {place: loaded for place, loaded in keys.items() if loaded}
    tasks = optimized(array.dask, list(itertools.chain.from_iterable(keys.values())))
    own, shared, futures = _split_by_chunk(tasks, list(keys.values()))
    renamed = {key: (f"{name}-input", n) for n, key in enumerate(shared)}
    # futures that are arguments of tasks, such as scattered arrays, have no key in the graph
    inputs = {key: array.dask[key] for key in futures if key in array.dask}
    for old, new in renamed.items():
        inputs[new] = with_other_inputs(tasks[old], renamed, new)
    joined: dict[Key, Any] = {}
    for number, (place, loaded) in enumerate(keys.items()):
        box = boxes[place]
        inside = {k: with_other_inputs(tasks[k], renamed, k) for k in own[number]}
        needed = [renamed.get(k, k) for k in loaded]
        sizes = tuple(tuple(axis[part]) for axis, part in zip(array.chunks, box, strict=True))
        present = None if wanted is None else wanted[box[: wanted.ndim]]
        key = (name, *place)
        joined[key] = in_one_task(key, _join, needed, inside, sizes, present, array.dtype)
    layers = {f"{name}-input": ListedTasks(inputs), name: ListedTasks(joined)}
    graph = HighLevelGraph(layers, {f"{name}-input": set(), name: {f"{name}-input"}})
    return da.Array(graph, name, chunks, meta=array._meta)


def _wanted_blocks(array: da.Array, grid: Grid, halos: Sequence[Halo]) -> BoolArray | None:
    """Return which navigation chunks of the array are needed; None if all chunks are loaded."""
    if grid.roi is None or not isinstance(array._meta, np.ndarray):
        return None
    small = Grid.of(array.chunks[: grid.roi.ndim], grid.roi, grid.present)
    wanted = np.zeros(small.numblocks, bool)
    wanted.reshape(-1)[small.selected] = True
    for index in loaded_for_others(halos, small):
        wanted[index] = True
    return None if wanted.all() else wanted


def _boxes(
    small: tuple[tuple[int, ...], ...], large: Chunks
) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Yield the place of each joined chunk, and the slices of its small chunks in their grid."""
    axes = []
    for sizes, joined in zip(small, large, strict=True):
        # a chunk of size 0 belongs to the joined chunk that ends there
        stops = np.searchsorted(np.cumsum(sizes), np.cumsum(joined), side="right").tolist()
        axes.append([slice(*pair) for pair in itertools.pairwise([0, *stops])])
    for place in itertools.product(*(range(len(axis)) for axis in axes)):
        yield place, tuple(axis[k] for axis, k in zip(axes, place, strict=True))


def _blocks(box: tuple[slice, ...], wanted: BoolArray | None) -> Iterator[tuple[int, ...]]:
    """Yield the places of the small chunks of a joined chunk that are loaded, in C order."""
    for block in itertools.product(*(range(part.start, part.stop) for part in box)):
        if wanted is None or wanted[block[: wanted.ndim]]:
            yield block


def _split_by_chunk(
    tasks: dict[Key, Any], groups: list[list[Key]]
) -> tuple[list[list[Key]], list[Key], set[Key]]:
    """Return the keys of tasks that one group needs alone, of shared tasks, and of futures.

    A future is a result that a cluster has already.
    """
    number_of: dict[Key, int] = {}
    futures: set[Key] = set()
    for number, keys in enumerate(groups):
        todo = list(keys)
        while todo:
            key = todo.pop()
            if key not in tasks:
                futures.add(key)
                continue
            known = number_of.get(key)
            if known in (number, SHARED):
                continue
            number_of[key] = number if known is None else SHARED
            todo.extend(tasks[key].dependencies)
    own: list[list[Key]] = [[] for _ in groups]
    shared: list[Key] = []
    for key, number in number_of.items():
        (shared if number == SHARED else own[number]).append(key)
    return own, shared, futures


def _join(
    blocks: list[Any],
    sizes: tuple[tuple[int, ...], ...],
    present: BoolArray | None,
    dtype: np.dtype[Any],
) -> Any:
    """Return one array from blocks in C order; `sizes` are those of the blocks along each axis.

    `present` says which navigation blocks are in the list; None if all are.
    """
    if len(blocks) == 1 and present is None:
        return blocks[0]
    given, nested = iter(blocks), []
    for place in itertools.product(*(range(len(axis)) for axis in sizes)):
        shape = tuple(axis[k] for axis, k in zip(sizes, place, strict=True))
        if present is None or present[place[: present.ndim]]:
            # dask would cast all blocks to the dtype of the first one, and broadcast smaller blocks
            block = plain_block(next(given), "a chunk")
            check_block(block, shape, dtype, "a chunk")
            nested.append(block if block.dtype == dtype else block.astype(dtype))
        else:
            nested.append(np.broadcast_to(np.zeros((), dtype), shape))
    for axis in reversed(sizes[1:]):
        nested = [nested[k : k + len(axis)] for k in range(0, len(nested), len(axis))]
    return join_blocks(nested)
