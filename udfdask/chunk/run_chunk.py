"""Run the UDFs of a pass on one chunk: start, process, and return partial results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from udfdask.backends.backend import NUMPY, Backend
from udfdask.backends.table import backend_of, in_backend
from udfdask.chunk.frames import SparseSource, signal_windows, source_of
from udfdask.chunk.partial_result import Partial, Partials
from udfdask.chunk.process import process, process_signal_chunk
from udfdask.chunk.task_context import chunk_context
from udfdask.chunk.udf_instance import Instance
from udfdask.errors import ArgumentTypeError, UDFError
from udfdask.once_per_process import OncePerProcess
from udfdask.plan.recipe import Group, Recipe
from udfdask.types import AnyArray
from udfdask.udf.aux_data import block_of, rows_of_block
from udfdask.udf.base import overrides
from udfdask.udf.params import TaskData

if TYPE_CHECKING:
    from udfdask.descan.shift_tile import FrameShifts

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
        own = _call_for_dict(instance, "get_task_data")
        both = sorted(set(shared) & set(own))
        if both:
            raise UDFError(
                f"{instance.declared.name}.get_task_data() and get_shared_task_data() both return "
                f"{both}: give them different names"
            )
        udf.task_data = TaskData({**shared, **own})
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
    with chunk_context(recipe, numbers, backends, block_backends):
        nav_shape, mask = recipe.grid.bounds(chunk)[1], recipe.grid.mask(chunk)
        source = source_of(blocks, block_backends, nav_shape, sig_chunks, mask, recipe.dtype)
        rows = aux_rows(recipe, chunk, aux, numbers)
        shifts = _frame_shifts(recipe, chunk, aux)
        moves_entries = recipe.descan is not None and recipe.descan.moves_entries
        # dense blocks may come as well
        if shifts is not None and moves_entries and isinstance(source, SparseSource):
            source, shifts = source.shifted(shifts), None
        instances = [start_udf(recipe, k, chunk, rows[k], backends[k]) for k in numbers]
        if part is None:
            process(instances, source, chunk, shifts)
        else:
            assert shifts is None  # shifted frames need pixels of several signal chunks
            process_signal_chunk(instances, source, chunk, part)
            for instance in instances:
                for name, spec in instance.declared.allocated.items():
                    if spec.kind == "sig":  # a copy, so that the full frame can be released
                        instance.arrays[name] = instance.arrays[name][window].copy()
        partials = {instance.number: end_udf(instance) for instance in instances}
        return tuple(partials.get(number) for number in range(len(recipe.udfs)))


def aux_rows(
    recipe: Recipe, chunk: int, aux: Sequence[Any], numbers: Sequence[int]
) -> list[dict[str, AnyArray]]:
    """Return the rows of aux data of a chunk by name, for each UDF; only `numbers` have any."""
    rows: list[dict[str, AnyArray]] = [{} for _ in recipe.udfs]
    for (number, name), block in zip(recipe.aux_slots, aux, strict=True):
        if number not in numbers:
            continue
        declared = recipe.udfs[number].aux[name]
        updated = recipe.udfs[number].kwargs[name]
        # a progressive run may have got other values since its tasks were made
        if updated.data is not None:
            block = block_of(updated.over(recipe.shape), recipe.grid, chunk)  # noqa: PLW2901
        what = f"aux data params.{name}"
        rows[number][name] = rows_of_block(block, declared, recipe.grid, chunk, what)
    return rows


def _frame_shifts(recipe: Recipe, chunk: int, aux: Sequence[Any]) -> FrameShifts | None:
    """Return the shifts of the selected frames of a chunk; None if frames are not shifted."""
    descan = recipe.descan
    if descan is None:
        return None
    from udfdask.descan.shift_tile import FrameShifts  # few runs need it

    rows = rows_of_block(aux[-1], descan.shifts, recipe.grid, chunk, "shifts of descan")
    sig = tuple(recipe.shape.sig)
    return FrameShifts(rows, sig, subpixel=descan.subpixel, fill=descan.fill)
