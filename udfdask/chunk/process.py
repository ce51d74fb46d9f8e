"""Runs the processing methods of UDFs over the frames of a chunk: tiles, frames or partitions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from udfdask.chunk.dense_tiles import DensePieces
from udfdask.chunk.frames.source import FrameSource
from udfdask.chunk.frames.sparse import SparseSource
from udfdask.chunk.sparse_tiles import SparsePieces, frames_of
from udfdask.chunk.udf_instance import Instance
from udfdask.types import AnyArray
from udfdask.udf import UDFMethod


def process(instances: list[Instance], source: FrameSource, chunk: int) -> None:
    """Run the processing method of every UDF over all frames of a chunk."""
    sparse = _take_sparse(instances, source)
    _process_dense([i for i in instances if i not in sparse], source, chunk)
    if sparse:
        assert isinstance(source, SparseSource)
        _process_sparse(sparse, source, chunk)


def _take_sparse(instances: list[Instance], source: FrameSource) -> list[Instance]:
    """Return the UDFs that take the data of a chunk sparse as they are."""
    if not isinstance(source, SparseSource):
        return []
    return [i for i in instances if i.takes_sparse and i.recipe.corrections is None]


def _by_method(
    instances: list[Instance],
) -> tuple[list[Instance], list[Instance], list[Instance]]:
    """Return the UDFs that process tiles, those that process frames, and partitions."""
    tiles, frames, partitions = (
        [i for i in instances if i.where.method is method]
        for method in (UDFMethod.TILE, UDFMethod.FRAME, UDFMethod.PARTITION)
    )
    return tiles, frames, partitions


def _process_dense(instances: list[Instance], source: FrameSource, chunk: int) -> None:
    """Run the processing method of UDFs over dense data, or what is made of them."""
    if not instances:
        return
    recipe, tiling = instances[0].recipe, instances[0].recipe.tiling
    tiles, frames, partitions = _by_method(instances)
    depth = tiling.frame_depth
    whole = frames
    if tiling.whole_frames or not tiles:
        whole = tiles + frames
        if _as_views(instances, source) and source.n_blocks == 1:
            depth = tiling.depth
    else:
        for number in range(recipe.n_blocks):
            _process_dense_tiles(tiles, source, chunk, number)
    for start, stop in _stacks(whole, chunk, depth):
        _process_whole(whole, DensePieces(source.frames(start, stop), source.dense), start, stop)
    if partitions:
        n_rows = recipe.grid.count(chunk)
        _process_whole(partitions, DensePieces(source.frames(0, n_rows), source.dense), 0, n_rows)


def _as_views(instances: list[Instance], source: FrameSource) -> bool:
    """Return whether tiles are views of the blocks, which no UDF has moved to its own side."""
    return source.together and all(instance.dense == source.dense for instance in instances)


def _process_sparse(instances: list[Instance], source: SparseSource, chunk: int) -> None:
    """Run the processing method of UDFs over sparse data as they are."""
    recipe, tiling = instances[0].recipe, instances[0].recipe.sparse_tiling
    tiles, frames, partitions = _by_method(instances)
    sig, whole = tuple(recipe.shape.sig), frames
    if tiling.whole_frames:
        whole = tiles + frames
    elif tiles:
        for number in range(recipe.n_blocks):
            _process_sparse_tiles(tiles, source, chunk, number)
    for start, stop in _stacks(whole, chunk, tiling.depth):
        _process_whole(whole, SparsePieces(source.sparse_frames(start, stop), sig), start, stop)
    if partitions:
        n_rows = recipe.grid.count(chunk)
        _process_whole(partitions, SparsePieces(source.sparse_frames(0, n_rows), sig), 0, n_rows)


def _process_whole(
    instances: list[Instance], pieces: DensePieces | SparsePieces, start: int, stop: int
) -> None:
    """Run the processing method of UDFs over the whole frames of rows `start` to `stop`."""
    for instance in instances:
        method = instance.where.method
        if method is UDFMethod.FRAME:
            _process_frames(instance, pieces.get(instance), start)
        else:
            instance.view_rows(start, stop)
            instance.call(f"process_{method.value}", pieces.get(instance))


def process_signal_chunk(
    instances: list[Instance], source: FrameSource, chunk: int, number: int
) -> None:
    """Run `process_tile` over the parts that lie in signal chunk `number`.

    `source` holds that signal chunk alone.
    """
    sparse = _take_sparse(instances, source)
    _process_dense_tiles([i for i in instances if i not in sparse], source, chunk, number)
    if sparse:
        assert isinstance(source, SparseSource)
        _process_sparse_tiles(sparse, source, chunk, number)


def _process_dense_tiles(
    instances: list[Instance], source: FrameSource, chunk: int, number: int
) -> None:
    """Run `process_tile` over the dense parts that lie in signal chunk `number`.

    `source` holds that signal chunk alone, or all of them.
    """
    if not instances:
        return
    recipe = instances[0].recipe
    parts = recipe.tiling.sig_parts
    corner = next(part.origin for part, block in parts if block == number)
    place = number if source.n_blocks > 1 else 0
    as_views = _as_views(instances, source)
    depth = recipe.tiling.depth if as_views else recipe.tiling.gathered_depth
    stacks = list(_stacks(instances, chunk, depth))
    for index, (part, block) in enumerate(parts):
        if block != number:
            continue
        backs = [instance.view_part(part, index) for instance in instances]
        window = part.shift_by([-o for o in corner]).get()
        for start, stop in stacks:
            look = partial(source.pixels, start, stop)
            tile = source.tile(start, stop, place, window)
            pieces = DensePieces(tile, source.dense, part, look)
            for instance in instances:
                instance.view_rows(start, stop)
                instance.call("process_tile", pieces.get(instance))
            del pieces
        _put_back(backs)


def _process_sparse_tiles(
    instances: list[Instance], source: SparseSource, chunk: int, number: int
) -> None:
    """Run `process_tile` over sparse tiles of signal chunk `number`.

    `source` holds that signal chunk alone, or all of them.
    """
    tiling = instances[0].recipe.sparse_tiling
    part, _ = tiling.sig_parts[number]
    place = number if source.n_blocks > 1 else 0
    backs = [instance.view_part(part, number) for instance in instances]
    for start, stop in _stacks(instances, chunk, tiling.depth):
        pieces = SparsePieces(source.sparse_tile(start, stop, place), tuple(part.shape))
        for instance in instances:
            instance.view_rows(start, stop)
            instance.call("process_tile", pieces.get(instance))
    _put_back(backs)


def _put_back(backs: list[list[tuple[AnyArray, AnyArray]]]) -> None:
    """Write parts of sig buffers that UDFs have seen copies of back where they belong."""
    for back in backs:
        for target, piece in back:
            target[...] = piece


def _process_frames(instance: Instance, stack: Any, first: int) -> None:
    """Run `process_frame` over a stack of frames whose first row is `first`."""
    if instance.where.promises.processes_stacks and not instance.takes_sparse:
        instance.view_rows(first, first + stack.shape[0])
        instance.call("process_stack", stack)
        return
    process = instance.udf.process_frame
    cursor = instance.cursor
    places, nav = _frame_views(instance, slice(first, first + stack.shape[0]))
    frames = frames_of(stack, instance.backend, instance.writable_input)
    try:
        if not nav:
            for row, frame in enumerate(frames, first):
                cursor.start, cursor.stop = row, row + 1
                process(frame)
        elif len(nav) == 1:
            ((views, name),) = places
            for row, (frame, view) in enumerate(zip(frames, nav[0], strict=True), first):
                cursor.start, cursor.stop = row, row + 1
                views[name] = view
                process(frame)
        else:
            for row, (frame, *each) in enumerate(zip(frames, *nav, strict=True), first):
                cursor.start, cursor.stop = row, row + 1
                for (views, name), view in zip(places, each, strict=True):
                    views[name] = view
                process(frame)
    except Exception as error:
        instance.blame(error, "process_frame")
        raise


def _frame_views(
    instance: Instance, rows: slice
) -> tuple[list[tuple[dict[str, Any], str]], list[AnyArray]]:
    """Return where views of nav buffers and aux data belong, and the rows that give them."""
    places, nav = [], []
    for name, spec in instance.where.allocated.items():
        if spec.kind == "nav":
            values = instance.arrays[name][rows]
            nav.append(values if spec.extra_shape else values[:, np.newaxis])
            places.append((instance.udf.results.__dict__, name))
    for name, every in instance.aux.items():
        values = every[rows]
        nav.append(values if instance.where.aux[name].extra_shape else values[:, np.newaxis])
        places.append((instance.udf.params.__dict__, name))
    return places, nav


def _stacks(instances: list[Instance], chunk: int, depth: int) -> Iterator[tuple[int, int]]:
    """Yield first and last row of each stack of at most `depth` frames."""
    if not instances:
        return
    grid = instances[0].recipe.grid
    n_rows = grid.count(chunk)
    runs = [(0, n_rows)]
    if any(instance.udf.contiguous_nav for instance in instances):
        rows = grid.rows(chunk)
        if not isinstance(rows, range):
            breaks = [0, *(np.flatnonzero(np.diff(rows) != 1) + 1).tolist(), n_rows]
            runs = list(itertools.pairwise(breaks))
    for first, last in runs:
        for start in range(first, last, depth):
            yield start, min(start + depth, last)
