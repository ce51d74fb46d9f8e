"""Runs all UDFs of a run over one chunk: blocks in, partial results out; plain arrays, no dask."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from udfdask.auxdata import block_of, rows_of_block
from udfdask.errors import ArgumentTypeError, UDFError
from udfdask.instance import Instance, held_threads
from udfdask.params import TaskData
from udfdask.partial import Partial
from udfdask.per_process import OncePerProcess
from udfdask.pieces import Pieces
from udfdask.recipe import Recipe
from udfdask.source import FrameSource
from udfdask.types import AnyArray
from udfdask.udf import UDFMethod, overrides

Payload = tuple[Partial, ...]

_shared = OncePerProcess(16)
"""What `get_shared_task_data` returned, by run and number of the UDF."""


def run_chunk(
    recipe: Recipe, chunk: int, blocks: Sequence[Any], aux: Sequence[Any] = ()
) -> Payload:
    """Return the partial result of every UDF over one chunk.

    `blocks` holds an array per signal chunk, shape (*nav part, *sig part); `aux` the values of the
    same scan positions for each of `recipe.aux_slots`, shape (*nav part, *extra_shape).
    """
    recipe = recipe.now
    with held_threads(recipe):
        instances = _start_all(recipe, chunk, aux)
        source = FrameSource(
            blocks,
            recipe.grid.bounds(chunk)[1],
            recipe.sig_chunks,
            recipe.grid.mask(chunk),
            recipe.dtype,
        )
        _process(instances, source, chunk)
        return tuple(_finish(instance) for instance in instances)


def run_part(
    recipe: Recipe, chunk: int, number: int, block: Any, aux: Sequence[Any] = ()
) -> Payload:
    """Return the partial result of every UDF over signal chunk `number` of a chunk.

    Sig buffers are cut to that signal chunk; `join_parts` puts the parts together.
    """
    with held_threads(recipe):
        instances = _start_all(recipe, chunk, aux)
        window = _windows(recipe)[number]
        source = FrameSource(
            [block],
            recipe.grid.bounds(chunk)[1],
            tuple((w.stop - w.start,) for w in window),
            recipe.grid.mask(chunk),
            recipe.dtype,
        )
        _process_tiles(instances, source, chunk, number)
        for instance in instances:
            for name, spec in instance.where.allocated.items():
                if spec.kind == "sig":  # a copy, which lets the whole frame go
                    instance.arrays[name] = instance.arrays[name][window].copy()
        return tuple(_finish(instance) for instance in instances)


def join_parts(recipe: Recipe, chunk: int, parts: Sequence[Payload]) -> Payload:
    """Return the partial results over a whole chunk from those over its signal chunks, in order.

    Rows are added up, sig buffers put beside each other: true of the UDFs that promise
    `_adds_signal_parts`.
    """
    recipe = recipe.now
    windows = _windows(recipe)
    sig = recipe.shape.sig
    n_rows = int(recipe.grid.counts[chunk])
    joined = []
    for k, declared in enumerate(recipe.udfs):
        arrays = {}
        for name, spec in declared.allocated.items():
            whole = spec.allocate(n_rows, sig)
            for window, part in zip(windows, parts, strict=True):
                if spec.kind == "sig":
                    whole[window] = part[k].arrays[name]
                else:
                    whole += part[k].arrays[name]
            arrays[name] = whole
        joined.append(Partial(arrays, chunk, chunk + 1, parts[0][k].aux))
    return tuple(joined)


def n_blocks(recipe: Recipe) -> int:
    """Return the number of signal chunks."""
    return int(np.prod([len(c) for c in recipe.sig_chunks]))


def _windows(recipe: Recipe) -> list[tuple[slice, ...]]:
    """Return where each signal chunk lies in a frame, in C order."""
    cuts = [
        [slice(stop - n, stop) for n, stop in zip(sizes, itertools.accumulate(sizes), strict=True)]
        for sizes in recipe.sig_chunks
    ]
    return list(itertools.product(*cuts))


def _start_all(recipe: Recipe, chunk: int, aux: Sequence[Any]) -> list[Instance]:
    """Return the UDFs ready to process a chunk."""
    rows: list[dict[str, AnyArray]] = [{} for _ in recipe.udfs]
    for (number, name), given in zip(recipe.aux_slots, aux, strict=True):
        declared = recipe.udfs[number].aux[name]
        newer = recipe.udfs[number].kwargs[name]
        # the parameters of the run may have been updated since its tasks were made
        updated = newer.data is not None
        block = block_of(newer.over(recipe.shape), recipe.grid, chunk) if updated else given
        rows[number][name] = rows_of_block(block, declared, recipe.grid, chunk)
    return [_start(recipe, number, chunk, rows[number]) for number in range(len(recipe.udfs))]


def _start(recipe: Recipe, number: int, chunk: int, aux: dict[str, AnyArray]) -> Instance:
    """Return a UDF ready to process a chunk: task data and preprocessed buffers in place."""
    instance = Instance(recipe, number, chunk, chunk + 1, aux)
    udf = instance.udf
    if overrides(udf, "get_tiling_preferences"):
        # the plan has chosen the tiles; asked again for what the method may keep on the instance
        instance.call("get_tiling_preferences")
    shared = _shared_task_data(instance, number)
    udf.task_data = TaskData(shared)
    if overrides(udf, "get_task_data"):
        own = _as_dict(instance, "get_task_data")
        both = sorted(set(shared) & set(own))
        if both:
            raise UDFError(
                f"{instance.where.name}.get_task_data() and get_shared_task_data() both return "
                f"{both}: give them different names"
            )
        udf.task_data = TaskData({**shared, **own})
    if overrides(udf, "preprocess"):
        instance.call("preprocess")
    return instance


def _shared_task_data(instance: Instance, number: int) -> dict[str, Any]:
    """Return what the chunks of a run share in this process, made for the first of them."""
    udf, run = instance.udf, instance.recipe.token
    if not overrides(udf, "get_shared_task_data"):
        return {}

    def make() -> dict[str, Any]:
        # without a chunk, whose rows would be those of whichever came first
        cursor, udf.meta.cursor = udf.meta.cursor, None
        instance.view_whole_aux()
        try:
            return _as_dict(instance, "get_shared_task_data")
        finally:
            udf.meta.cursor = cursor
            instance.view_all()

    made: dict[str, Any] = _shared.get((run, number), make) if run else make()
    return made


def _as_dict(instance: Instance, method: str) -> dict[str, Any]:
    """Return the task data that a method gives, checked."""
    given = instance.call(method)
    if not isinstance(given, Mapping):
        raise ArgumentTypeError(
            f"{instance.where.name}.{method}() must return a dictionary, not {type(given).__name__}"
        )
    return dict(given)


def _finish(instance: Instance) -> Partial:
    """Return the partial result of a UDF that has seen the whole chunk."""
    udf, cursor = instance.udf, instance.cursor
    cursor.part, cursor.part_index = None, 0
    if overrides(udf, "postprocess"):
        first, stop = cursor.chunks
        offsets = instance.recipe.grid.offsets
        cursor.start, cursor.stop = 0, int(offsets[stop] - offsets[first])
        instance.view_all()
        instance.call("postprocess")
    if overrides(udf, "cleanup"):
        instance.call("cleanup")
    aux = instance.aux if instance.where.carries_aux else {}
    return Partial(instance.arrays, *cursor.chunks, dict(aux))


def _process(instances: list[Instance], source: FrameSource, chunk: int) -> None:
    """Run the processing method of every UDF over all frames of a chunk."""
    recipe, tiling = instances[0].recipe, instances[0].recipe.tiling
    tiles = [i for i in instances if i.where.method is UDFMethod.TILE]
    frames = [i for i in instances if i.where.method is UDFMethod.FRAME]
    partitions = [i for i in instances if i.where.method is UDFMethod.PARTITION]
    n_rows = int(recipe.grid.counts[chunk])
    if tiling.whole_frames or not tiles:
        if tiles or frames:
            views = source.together and source.n_blocks == 1
            depth = tiling.depth if views else tiling.frame_depth
            for start, stop in _stacks(tiles + frames, chunk, depth):
                pieces = Pieces(source.frames(start, stop))
                for instance in tiles:
                    instance.view_rows(start, stop)
                    instance.call("process_tile", pieces.get(instance))
                for instance in frames:
                    _process_frames(instance, pieces.get(instance), start)
                del pieces  # or it stays in memory while the next stack is assembled
    else:
        for number in range(n_blocks(recipe)):
            _process_tiles(tiles, source, chunk, number)
        if frames:
            for start, stop in _stacks(frames, chunk, tiling.frame_depth):
                pieces = Pieces(source.frames(start, stop))
                for instance in frames:
                    _process_frames(instance, pieces.get(instance), start)
                del pieces  # or it stays in memory while the next stack is assembled
    if partitions:
        pieces = Pieces(source.frames(0, n_rows))
        for instance in partitions:
            instance.view_rows(0, n_rows)
            instance.call("process_partition", pieces.get(instance))


def _process_tiles(instances: list[Instance], source: FrameSource, chunk: int, number: int) -> None:
    """Run `process_tile` over the parts that lie in signal chunk `number`.

    `source` holds that signal chunk alone, or all of them.
    """
    recipe = instances[0].recipe
    parts = recipe.tiling.sig_parts
    corner = next(part.origin for part, block in parts if block == number)
    place = number if source.n_blocks > 1 else 0
    depth = recipe.tiling.depth if source.together else recipe.tiling.gathered_depth
    stacks = list(_stacks(instances, chunk, depth))
    for index, (part, block) in enumerate(parts):
        if block != number:
            continue
        backs = [instance.view_part(part, index) for instance in instances]
        window = part.shift_by([-o for o in corner]).get()
        for start, stop in stacks:
            look = partial(source.pixels, start, stop)
            pieces = Pieces(source.tile(start, stop, place, window), part, look)
            for instance in instances:
                instance.view_rows(start, stop)
                instance.call("process_tile", pieces.get(instance))
            del pieces
        for back in backs:
            for target, piece in back:
                target[...] = piece


def _process_frames(instance: Instance, stack: AnyArray, first: int) -> None:
    """Run `process_frame` over a stack of frames whose first row is `first`."""
    process = instance.udf.process_frame
    cursor = instance.cursor
    places, nav = _frame_views(instance, slice(first, first + len(stack)))
    try:
        if instance.udf._maps_frames and len(nav) == 1:  # no aux data
            _map_frames(instance, stack, first)
        elif not nav:
            for row, frame in enumerate(stack, first):
                cursor.start, cursor.stop = row, row + 1
                process(frame)
        elif len(nav) == 1:
            ((views, name),) = places
            for row, (frame, view) in enumerate(zip(stack, nav[0], strict=True), first):
                cursor.start, cursor.stop = row, row + 1
                views[name] = view
                process(frame)
        else:
            for row, (frame, *each) in enumerate(zip(stack, *nav, strict=True), first):
                cursor.start, cursor.stop = row, row + 1
                for (views, name), view in zip(places, each, strict=True):
                    views[name] = view
                process(frame)
    except Exception as error:
        instance.blame(error, "process_frame")
        raise


def _map_frames(instance: Instance, stack: AnyArray, first: int) -> None:
    """Run a UDF that promises `_maps_frames` over a stack of frames whose first row is `first`."""
    udf: Any = instance.udf
    (rows,) = instance.arrays.values()
    try:
        udf._map_frames(stack, rows[first : first + len(stack)])
    except Exception:
        row = first + udf._row
        instance.cursor.start, instance.cursor.stop = row, row + 1
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
    grid = instances[0].recipe.grid
    n_rows = int(grid.counts[chunk])
    runs = [(0, n_rows)]
    if any(instance.udf.contiguous_nav for instance in instances):
        rows = grid.rows(chunk)
        if not isinstance(rows, range):
            breaks = [0, *(np.flatnonzero(np.diff(rows) != 1) + 1).tolist(), n_rows]
            runs = list(itertools.pairwise(breaks))
    for first, last in runs:
        for start in range(first, last, depth):
            yield start, min(start + depth, last)
