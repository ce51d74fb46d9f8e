"""Run the UDFs of a pass on one chunk: start them, process tiles, and return partial results."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from udfdask.backends.backend import NUMPY, Backend, locked
from udfdask.backends.table import backend_of, check_block, in_backend, plain_block, to_host
from udfdask.base.once_per_process import OncePerProcess
from udfdask.base.types import AnyArray
from udfdask.chunk.dense_tiles import Cutter, DenseTile, SparseTile, frames_of
from udfdask.chunk.frames import (
    DenseSource,
    FrameSource,
    SparseSource,
    converted_blocks,
    signal_windows,
)
from udfdask.chunk.partial_result import Partial, Partials
from udfdask.chunk.task_context import chunk_context
from udfdask.chunk.udf_instance import Instance
from udfdask.corrections.shift_tile import FrameShifts
from udfdask.errors import ArgumentTypeError
from udfdask.plan.groups import Group
from udfdask.plan.recipe import DESCAN, Recipe
from udfdask.udf import UDFMethod
from udfdask.udf.base import overrides
from udfdask.udf.params import TaskData


def run_chunk(
    recipe: Recipe,
    chunk: int,
    blocks: Sequence[Any],
    aux: Sequence[Any] = (),
    group: Group | None = None,
    part: int | None = None,
) -> Partials:
    """Return the partial results of all UDFs, or of a group of them, over one chunk.

    `blocks` holds an array per signal chunk, shape (*nav part, *sig part). `aux` holds the values
    of the same scan positions for each of `recipe.aux_slots`, shape (*nav part, *extra_shape), or
    None for a UDF of another group. Shifts of frames are the last of them.

    With `part`, there is one block: signal chunk number `part`. Sig buffers are cut to it;
    `join_parts` joins the partial results.
    """
    recipe = recipe.now
    sig_chunks = recipe.sig_chunks
    if part is not None:
        window = signal_windows(sig_chunks)[part]
        sig_chunks = tuple((w.stop - w.start,) for w in window)
    block_backends = [backend_of(block) for block in blocks]
    numbers = range(len(recipe.udfs)) if group is None else group.numbers
    backends = recipe.backends_over(block_backends[0])
    source: FrameSource
    with chunk_context(recipe, numbers, backends, block_backends):
        nav_shape, mask = recipe.grid.bounds(chunk)[1], recipe.grid.mask(chunk)
        native, converted = block_backends[0], converted_blocks(blocks, block_backends)
        kind = SparseSource if native.is_sparse else DenseSource
        source = kind(converted, native, nav_shape, sig_chunks, mask, recipe.dtype)
        if part is not None:
            source.first_pixel = tuple(w.start for w in window)
        values = aux_values(recipe, recipe.grid.index(chunk), aux, numbers)
        rows = aux_rows(recipe, chunk, values)
        shifts, descan = None, recipe.descan
        if descan is not None:
            given, sig = rows[DESCAN]["shifts"], tuple(recipe.shape.sig)
            shifts = FrameShifts(given, sig, subpixel=descan.subpixel, fill=descan.fill)
            # dense blocks may come as well
            if descan.moves_entries and isinstance(source, SparseSource):
                source, shifts = source.shifted(shifts), None
        instances = [start_udf(recipe, k, chunk, rows.get(k, {}), backends[k]) for k in numbers]
        process(instances, source, chunk, shifts, part)
        if part is not None:
            for instance in instances:
                for name, spec in instance.declared.allocated.items():
                    if spec.kind == "sig":  # a copy, so that the full frame can be released
                        instance.arrays[name] = instance.arrays[name][window].copy()
        partials = {instance.number: end_udf(instance) for instance in instances}
        return tuple(partials.get(number) for number in range(len(recipe.udfs)))


_shared = OncePerProcess(16)
"""What `get_shared_task_data` returned, by run, number of the UDF and array backend."""


def start_udf(
    recipe: Recipe, number: int, chunk: int, aux: dict[str, AnyArray], backend: Backend
) -> Instance:
    """Return a UDF that is ready to process a chunk, with task data and preprocessed buffers."""
    instance = Instance(recipe, number, chunk, chunk + 1, aux, backend)
    udf = instance.udf
    if overrides(udf, "get_tiling_preferences"):
        # Its answer is ignored, because law 14 wants the tiles of the plan everywhere. It is called
        # because LiberTEM calls it here: the method may set attributes.
        instance.call("get_tiling_preferences")
    shared = _shared_task_data(instance)
    udf.task_data = TaskData(shared)
    if overrides(udf, "get_task_data"):
        udf.task_data = TaskData(dict(**shared, **_call_for_dict(instance, "get_task_data")))
    if overrides(udf, "preprocess"):
        instance.call("preprocess")
    return instance


def _shared_task_data(instance: Instance) -> dict[str, Any]:
    """Return the task data that all chunks of a run share in this process, created by the first."""
    udf, run = instance.udf, instance.recipe.token
    if not overrides(udf, "get_shared_task_data"):
        return {}

    def make() -> tuple[dict[str, Any], set[str]]:
        # without a cursor: the data must not depend on which chunk came first
        udf.meta._position = None
        instance.view_all_aux()
        try:
            made = _call_for_dict(instance, "get_shared_task_data")
            instance.dense.wait()  # threads with other streams use the arrays without waiting
            return made, set(udf.meta._looks)
        finally:
            udf.meta._position = instance.cursor
            instance.view_all()

    # CuPy arrays belong to the module that made them; tests replace it
    key = (run, instance.number, instance.backend, udf.xp)
    made: dict[str, Any]
    made, looks = _shared.get(key, make) if run else make()
    udf.meta._looks |= looks
    return made


def _call_for_dict(instance: Instance, method: str) -> dict[str, Any]:
    """Return the task data that a method returns, after a check."""
    returned = instance.call(method)
    if not isinstance(returned, Mapping):
        raise ArgumentTypeError(
            f"{instance.declared.name}.{method}() must return a dictionary, not "
            f"{type(returned).__name__}"
        )
    return dict(returned)


def end_udf(instance: Instance) -> Partial:
    """Return the partial result of a UDF that has processed the whole chunk."""
    udf, cursor = instance.udf, instance.cursor
    cursor.part, cursor.part_index = None, 0
    if overrides(udf, "postprocess"):
        cursor.start, cursor.stop = 0, instance.recipe.grid.n_rows(*cursor.chunks)
        instance.view_all()
        instance.call("postprocess")
    if overrides(udf, "cleanup"):
        instance.call("cleanup")
    arrays, backend = instance.arrays, instance.recipe.merge_backend(instance.number)
    if backend != NUMPY or instance.dense != NUMPY:
        specs = instance.declared.allocated
        arrays = {k: in_backend(a, specs[k].backend(backend)) for k, a in arrays.items()}
    aux = instance.aux if instance.declared.carries_aux else {}
    return Partial(arrays, *cursor.chunks, dict(aux), bool(udf.meta._looks))


def aux_values(
    recipe: Recipe, index: tuple[int, ...], aux: Sequence[Any], numbers: Sequence[int]
) -> list[AnyArray | None]:
    """Return the aux data of a chunk by its place in dask's grid; None for other UDFs."""
    found: list[AnyArray | None] = []
    window = recipe.grid.window_at(index)
    for (number, name), given in zip(recipe.aux_slots, aux, strict=False):
        block = given
        if number == DESCAN:
            assert recipe.descan is not None
            declared, what = recipe.descan.shifts, "shifts of descan: a chunk"
        elif block is None or number not in numbers:
            found.append(None)
            continue
        else:
            declared, what = recipe.udfs[number].aux[name], f"aux data params.{name}: a chunk"
            updated = recipe.udfs[number].kwargs[name]
            # a progressive run may have got other values since its tasks were made
            if updated.data is not None:
                block = updated.over(recipe.shape)[window]
        values = to_host(plain_block(block, what))
        shape = (*(w.stop - w.start for w in window), *declared.extra_shape)
        check_block(values, shape, declared.dtype, what)
        found.append(locked(values.astype(declared.dtype, copy=False)))
    return found


def aux_rows(
    recipe: Recipe, chunk: int, values: Sequence[AnyArray | None]
) -> dict[int, dict[str, AnyArray]]:
    """Return the rows of the values of a chunk, by number of the UDF and name."""
    rows: dict[int, dict[str, AnyArray]] = {}
    nav, mask = recipe.grid.bounds(chunk)[1], recipe.grid.mask(chunk)
    for (number, name), block in zip(recipe.aux_slots, values, strict=False):
        if block is not None:
            flat = block.reshape((math.prod(nav), *block.shape[len(nav) :]))
            rows.setdefault(number, {})[name] = locked(flat if mask is None else flat[mask])
    return rows


def process(
    instances: list[Instance],
    source: FrameSource,
    chunk: int,
    shifts: FrameShifts | None = None,
    part: int | None = None,
) -> None:
    """Run the UDFs over all frames of a chunk; with `part`, over one signal chunk."""
    dense, recipe = instances, instances[0].recipe
    # changed pixels need dense tiles; a UDF that takes sparse data then gets these as sparse ones
    if isinstance(source, SparseSource) and recipe.corrections is None and shifts is None:
        dense = [i for i in instances if not i.backend.is_sparse]
        sparse = [i for i in instances if i.backend.is_sparse]
        if sparse:
            _process(sparse, Cutter(source, recipe.sparse_tiling, sparse=True), chunk, part)
    if dense:
        corrected = recipe.corrections is not None
        cutter = Cutter(source, recipe.tiling, shifts, corrected=corrected)
        _process(dense, cutter, chunk, part)


def _process(instances: list[Instance], cutter: Cutter, chunk: int, part: int | None) -> None:
    """Run the processing method of each UDF over all frames of a chunk, or of a signal chunk."""
    recipe, tiling = instances[0].recipe, cutter.tiling
    tiles, frames, partitions = (
        [i for i in instances if i.declared.method is method]
        for method in (UDFMethod.TILE, UDFMethod.FRAME, UDFMethod.PARTITION)
    )
    full_frame, depth = frames, tiling.frame_depth
    if part is None and (tiling.whole_frames or not tiles):
        full_frame = tiles + frames  # one pass over the same stacks of frames for both methods
        if cutter.source.n_blocks == 1 and _gets_views(instances, cutter):
            depth = tiling.depth
    else:
        for block in range(recipe.n_blocks) if part is None else (part,):
            _process_tiles(tiles, cutter, chunk, block)
    read = cutter.reader()
    # all UDFs of the run count: results must not depend on which of them run together in a task
    for start, stop in _stacks(full_frame, chunk, recipe.contiguous_nav, depth):
        _process_tile(full_frame, read(start, stop), start, stop)
    for contiguous in (False, True):
        some = [i for i in partitions if i.declared.contiguous_nav is contiguous]
        for start, stop in _stacks(some, chunk, contiguous):
            _process_tile(some, read(start, stop), start, stop)


def _gets_views(instances: list[Instance], cutter: Cutter) -> bool:
    """Return whether tiles are views of the blocks, and no UDF gets copies on another device."""
    return cutter.tiles_are_views and all(i.dense == cutter.source.dense for i in instances)


def _stacks(
    instances: list[Instance], chunk: int, contiguous: bool, depth: int | None = None
) -> Iterator[tuple[int, int]]:
    """Yield first and last row of each stack of at most `depth` frames, consecutive if asked."""
    if not instances:
        return
    grid = instances[0].recipe.grid
    n_rows = grid.count(chunk)
    rows = grid.rows(chunk) if contiguous else range(n_rows)
    breaks = [0, n_rows]
    if not isinstance(rows, range):
        breaks[1:1] = (np.flatnonzero(np.diff(rows) != 1) + 1).tolist()
    for first, last in itertools.pairwise(breaks):
        for start in range(first, last, depth or last - first):
            yield start, min(start + (depth or last - first), last)


def _process_tiles(instances: list[Instance], cutter: Cutter, chunk: int, block: int) -> None:
    """Run `process_tile` over the tiles that lie in one signal chunk."""
    tiling = cutter.tiling
    # Tiles that are copies are no deeper than the cache holds; views may have all frames.
    depth = tiling.depth if _gets_views(instances, cutter) else tiling.gathered_depth
    stacks = list(_stacks(instances, chunk, instances[0].recipe.contiguous_nav, depth))
    for index, (part, part_block) in enumerate(tiling.sig_parts):
        if part_block != block:
            continue
        copies = [instance.view_part(part, index) for instance in instances]
        read = cutter.reader(part, block)
        for start, stop in stacks:
            _process_tile(instances, read(start, stop), start, stop)
        for window, copy in itertools.chain(*copies):
            window[...] = copy


def _process_tile(
    instances: list[Instance], tile: DenseTile | SparseTile, start: int, stop: int
) -> None:
    """Give a tile of rows `start` to `stop` to UDFs, or the sums of the tile that they share."""
    for instance in instances:
        if instance.declared.method is UDFMethod.FRAME:
            _process_frames(instance, tile.get(instance), start)
            continue
        instance.view_rows(start, stop)
        shares = instance.number in instance.recipe.summed and instance.backend == NUMPY
        # the parameters of a run can change: an instance may decline sums that the plan counted on
        if shares and isinstance(tile, DenseTile) and getattr(instance.udf, "process_sums", None):
            instance.call("process_sums", tile.sums(instance))
        else:
            instance.call(instance.method, tile.get(instance))


def _process_frames(instance: Instance, stack: Any, first: int) -> None:
    rows = slice(first, first + stack.shape[0])
    if instance.declared.promises.processes_stacks and not instance.backend.is_sparse:
        instance.view_rows(rows.start, rows.stop)
        instance.call("process_stack", stack)
        return
    cursor, process_frame = instance.cursor, instance.udf.process_frame
    # the attributes that change with each frame, and an array of the values of each
    places: list[tuple[dict[str, Any], str]] = []
    views: list[AnyArray] = []
    for shown, name, array, extra_shape in instance.by_row:
        # an item of an array without extra axes would be a number, not a view to write to
        views.append(array[rows] if extra_shape else array[rows, np.newaxis])
        places.append((shown, name))
    frames = frames_of(stack, instance.backend, instance.writable_input)
    # Two loops, because for most UDFs a frame has one view, and each step of Python counts: the
    # maximum of a spectrum takes 1.4 µs, of which a bare loop needs 1.2.
    try:
        if len(views) == 1:
            ((shown, name),) = places
            for row, (frame, view) in enumerate(zip(frames, views[0], strict=True), first):
                cursor.start, cursor.stop = row, row + 1
                shown[name] = view
                process_frame(frame)
        else:
            for row, (frame, *each) in enumerate(zip(frames, *views, strict=True), first):
                cursor.start, cursor.stop = row, row + 1
                for (shown, name), view in zip(places, each, strict=True):
                    shown[name] = view
                process_frame(frame)
    except Exception as error:
        instance.note_origin(error, "process_frame")
        raise
