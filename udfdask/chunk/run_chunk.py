"""Runs all UDFs of a run over one chunk: blocks in, partial results out; plain arrays, no dask."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from udfdask.arrays.backends.backend import Backend
from udfdask.arrays.backends.convert import in_backend
from udfdask.arrays.backends.dense_backends import NUMPY
from udfdask.arrays.backends.table import backend_of
from udfdask.cache import OncePerProcess
from udfdask.chunk.device_context import chunk_device, merge_device
from udfdask.chunk.frames.open_source import source_of
from udfdask.chunk.frames.source import FrameSource
from udfdask.chunk.partial_result import Partial
from udfdask.chunk.process import process, process_signal_chunk
from udfdask.chunk.udf_instance import Instance, held_threads
from udfdask.errors import ArgumentTypeError, UDFError
from udfdask.kernels.overflow import add_exactly
from udfdask.plan.device_groups import Group
from udfdask.plan.recipe import Recipe
from udfdask.types import AnyArray
from udfdask.udf.aux_data import block_of, rows_of_block
from udfdask.udf.base import overrides
from udfdask.udf.params import TaskData

Payload = tuple[Partial | None, ...]
"""The partial of each UDF of a run; None where the task of another group has it."""

_shared = OncePerProcess(16)
"""What `get_shared_task_data` returned, by run, number of the UDF and array backend."""


def run_chunk(
    recipe: Recipe,
    chunk: int,
    blocks: Sequence[Any],
    aux: Sequence[Any] = (),
    group: Group | None = None,
) -> Payload:
    """Return the partial result of every UDF, or of a group of them, over one chunk.

    `blocks` holds an array per signal chunk, shape (*nav part, *sig part); `aux` the values of the
    same scan positions for each of `recipe.aux_slots`, shape (*nav part, *extra_shape); None where
    they are of a UDF of another group.
    """
    recipe = recipe.now
    kinds = [backend_of(block) for block in blocks]
    with held_threads(recipe), _device(recipe, kinds, group):
        source = _source(recipe, chunk, blocks, kinds, recipe.sig_chunks)
        instances = _start_all(recipe, chunk, aux, source.backend, group)
        process(instances, source, chunk)
        return _payload(recipe, instances, group)


def run_part(
    recipe: Recipe,
    chunk: int,
    number: int,
    block: Any,
    aux: Sequence[Any] = (),
    group: Group | None = None,
) -> Payload:
    """Return the partial result of every UDF, or of a group, over signal chunk `number` of a chunk.

    Sig buffers are cut to that signal chunk; `join_parts` puts the parts together.
    """
    kinds = [backend_of(block)]
    with held_threads(recipe), _device(recipe, kinds, group):
        window = _windows(recipe)[number]
        sizes = tuple((w.stop - w.start,) for w in window)
        source = _source(recipe, chunk, [block], kinds, sizes)
        instances = _start_all(recipe, chunk, aux, source.backend, group)
        process_signal_chunk(instances, source, chunk, number)
        for instance in instances:
            for name, spec in instance.where.allocated.items():
                if spec.kind == "sig":  # a copy, which lets the whole frame go
                    instance.arrays[name] = instance.arrays[name][window].copy()
        return _payload(recipe, instances, group)


def join_parts(recipe: Recipe, chunk: int, parts: Sequence[Payload]) -> Payload:
    """Return the partial results over a whole chunk from those over its signal chunks, in order.

    Rows are added up, sig buffers put beside each other: true of the UDFs that promise
    `adds_signal_parts`.
    """
    recipe = recipe.now
    with merge_device(recipe):
        return tuple(
            _join(recipe, number, chunk, [part[number] for part in parts])
            for number in range(len(recipe.udfs))
        )


def _join(
    recipe: Recipe, number: int, chunk: int, parts: Sequence[Partial | None]
) -> Partial | None:
    """Return the partial result of a UDF over a whole chunk; None if another group has it."""
    ours = [part for part in parts if part is not None]
    if not ours:
        return None
    n_rows, sig = recipe.grid.count(chunk), recipe.shape.sig
    arrays = {}
    for name, spec in recipe.udfs[number].allocated.items():
        whole = spec.allocate(n_rows, sig, recipe.merge_backend(number))
        for window, part in zip(_windows(recipe), ours, strict=True):
            if spec.kind == "sig":
                whole[window] = part.arrays[name]
            else:
                add_exactly(whole, part.arrays[name])
        arrays[name] = whole
    return Partial(arrays, chunk, chunk + 1, ours[0].aux)


def _device(
    recipe: Recipe, kinds: Sequence[Backend], group: Group | None
) -> AbstractContextManager[None]:
    """Return the context in which a group sees a chunk whose blocks are of these backends."""
    backends = recipe.backends_over(kinds[0])
    ours = backends if group is None else [backends[number] for number in group.numbers]
    # results are merged on the announced device, also where these blocks are not on it
    return chunk_device(ours, [recipe.native, *kinds])


def join_groups(payloads: Sequence[Payload]) -> Payload:
    """Return the partial results of all groups over a chunk in one payload."""
    return tuple(
        next((partial for partial in partials if partial is not None), None)
        for partials in zip(*payloads, strict=True)
    )


def _windows(recipe: Recipe) -> list[tuple[slice, ...]]:
    """Return where each signal chunk lies in a frame, in C order."""
    cuts = [
        [slice(stop - n, stop) for n, stop in zip(sizes, itertools.accumulate(sizes), strict=True)]
        for sizes in recipe.sig_chunks
    ]
    return list(itertools.product(*cuts))


def _source(
    recipe: Recipe,
    chunk: int,
    blocks: Sequence[Any],
    kinds: Sequence[Backend],
    sig_chunks: tuple[tuple[int, ...], ...],
) -> FrameSource:
    """Return the frames of a chunk, out of blocks for each of the signal chunks."""
    nav_shape, mask = recipe.grid.bounds(chunk)[1], recipe.grid.mask(chunk)
    return source_of(blocks, kinds, nav_shape, sig_chunks, mask, recipe.dtype)


def _start_all(
    recipe: Recipe, chunk: int, aux: Sequence[Any], native: Backend, group: Group | None
) -> list[Instance]:
    """Return the UDFs of a group, or all, ready to process a chunk of backend `native`."""
    numbers = range(len(recipe.udfs)) if group is None else group.numbers
    rows: list[dict[str, AnyArray]] = [{} for _ in recipe.udfs]
    for (number, name), given in zip(recipe.aux_slots, aux, strict=True):
        if number not in numbers:
            continue
        declared = recipe.udfs[number].aux[name]
        newer = recipe.udfs[number].kwargs[name]
        # the parameters of the run may have been updated since its tasks were made
        updated = newer.data is not None
        block = block_of(newer.over(recipe.shape), recipe.grid, chunk) if updated else given
        rows[number][name] = rows_of_block(block, declared, recipe.grid, chunk, name)
    backends = recipe.backends_over(native)
    return [_start(recipe, number, chunk, rows[number], backends[number]) for number in numbers]


def _start(
    recipe: Recipe, number: int, chunk: int, aux: dict[str, AnyArray], backend: Backend
) -> Instance:
    """Return a UDF ready to process a chunk: task data and preprocessed buffers in place."""
    instance = Instance(recipe, number, chunk, chunk + 1, aux, backend)
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
            made = _as_dict(instance, "get_shared_task_data")
            instance.dense.wait()  # other threads, on other streams, take it as it is
            return made
        finally:
            udf.meta.cursor = cursor
            instance.view_all()

    # arrays of CuPy belong to the module that made them, and in tests that is not always the same
    key = (run, number, instance.backend, udf.xp)
    made: dict[str, Any] = _shared.get(key, make) if run else make()
    return made


def _as_dict(instance: Instance, method: str) -> dict[str, Any]:
    """Return the task data that a method gives, checked."""
    given = instance.call(method)
    if not isinstance(given, Mapping):
        raise ArgumentTypeError(
            f"{instance.where.name}.{method}() must return a dictionary, not {type(given).__name__}"
        )
    return dict(given)


def _payload(recipe: Recipe, instances: list[Instance], group: Group | None) -> Payload:
    """Return the partial results of UDFs that have seen the whole chunk."""
    if group is None:
        return tuple([_finish(instance, number) for number, instance in enumerate(instances)])
    numbers = group.numbers
    found = {k: _finish(i, k) for k, i in zip(numbers, instances, strict=True)}
    return tuple(found.get(number) for number in range(len(recipe.udfs)))


def _finish(instance: Instance, number: int) -> Partial:
    """Return the partial result of a UDF that has seen the whole chunk."""
    udf, cursor = instance.udf, instance.cursor
    cursor.part, cursor.part_index = None, 0
    if overrides(udf, "postprocess"):
        cursor.start, cursor.stop = 0, instance.recipe.grid.n_rows(*cursor.chunks)
        instance.view_all()
        instance.call("postprocess")
    if overrides(udf, "cleanup"):
        instance.call("cleanup")
    aux = instance.aux if instance.where.carries_aux else {}
    return Partial(_kept(instance, number), *cursor.chunks, dict(aux))


def _kept(instance: Instance, number: int) -> dict[str, AnyArray]:
    """Return the buffers of a UDF where they are merged: on the device over chunks that are."""
    backend = instance.recipe.merge_backend(number)
    if backend == NUMPY and instance.dense == NUMPY:
        return instance.arrays
    specs = instance.where.allocated
    return {
        name: in_backend(array, specs[name].backend(backend))
        for name, array in instance.arrays.items()
    }
