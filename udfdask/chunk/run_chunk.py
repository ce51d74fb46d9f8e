"""Run all UDFs over one chunk: blocks in, partial results out; plain arrays, no dask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from udfdask.arrays.backends.table import backend_of
from udfdask.chunk.device_context import chunk_device
from udfdask.chunk.frames.open_source import source_of
from udfdask.chunk.frames.source import FrameSource, signal_windows
from udfdask.chunk.frames.sparse import SparseSource
from udfdask.chunk.partial_result import Partials
from udfdask.chunk.process import process, process_signal_chunk
from udfdask.chunk.start_and_end import end_udf, start_udf
from udfdask.chunk.udf_instance import Instance, limit_threads
from udfdask.plan.device_groups import Group
from udfdask.plan.recipe import Recipe
from udfdask.types import AnyArray
from udfdask.udf.aux_data import block_of, rows_of_block

if TYPE_CHECKING:
    from udfdask.descan.frame_shifts import FrameShifts


def run_chunk(
    recipe: Recipe,
    chunk: int,
    blocks: Sequence[Any],
    aux: Sequence[Any] = (),
    group: Group | None = None,
) -> Partials:
    """Return the partial results of all UDFs, or of a group of them, over one chunk.

    `blocks` holds an array per signal chunk, shape (*nav part, *sig part). `aux` holds the values
    of the same scan positions for each of `recipe.aux_slots`, shape (*nav part, *extra_shape), or
    None for a UDF of another group. Shifts of frames are the last of them.
    """
    recipe = recipe.now

    def work(instances: list[Instance], source: FrameSource, shifts: FrameShifts | None) -> None:
        process(instances, source, chunk, shifts)

    return _run(recipe, chunk, blocks, recipe.sig_chunks, aux, group, work)


def run_part(
    recipe: Recipe,
    chunk: int,
    number: int,
    block: Any,
    aux: Sequence[Any] = (),
    group: Group | None = None,
) -> Partials:
    """Return the partial results over signal chunk `number` of a chunk, as `run_chunk` does.

    Sig buffers are cut to that signal chunk; `join_parts` joins the partial results.
    """
    window = signal_windows(recipe.sig_chunks)[number]

    def work(instances: list[Instance], source: FrameSource, shifts: FrameShifts | None) -> None:
        assert shifts is None  # shifted frames need pixels of several signal chunks
        process_signal_chunk(instances, source, chunk, number)
        for instance in instances:
            for name, spec in instance.declared.allocated.items():
                if spec.kind == "sig":  # a copy, so that the full frame can be released
                    instance.arrays[name] = instance.arrays[name][window].copy()

    sizes = tuple((w.stop - w.start,) for w in window)
    return _run(recipe, chunk, [block], sizes, aux, group, work)


def _run(
    recipe: Recipe,
    chunk: int,
    blocks: Sequence[Any],
    sig_chunks: tuple[tuple[int, ...], ...],
    aux: Sequence[Any],
    group: Group | None,
    work: Callable[[list[Instance], FrameSource, FrameShifts | None], None],
) -> Partials:
    """Start the UDFs, let `work` process blocks of the given signal chunks, and end the UDFs."""
    block_backends = [backend_of(block) for block in blocks]
    numbers = range(len(recipe.udfs)) if group is None else group.numbers
    backends = recipe.backends_over(block_backends[0])
    # The announced backend counts too: results are merged there, also if these blocks are not.
    device = chunk_device(
        [backends[number] for number in numbers], [recipe.native, *block_backends]
    )
    with limit_threads(recipe), device:
        nav_shape, mask = recipe.grid.bounds(chunk)[1], recipe.grid.mask(chunk)
        source = source_of(blocks, block_backends, nav_shape, sig_chunks, mask, recipe.dtype)
        rows = aux_rows(recipe, chunk, aux, numbers)
        shifts = _frame_shifts(recipe, chunk, aux)
        moves_entries = recipe.descan is not None and recipe.descan.moves_entries
        # dense blocks may come as well
        if shifts is not None and moves_entries and isinstance(source, SparseSource):
            source, shifts = source.shifted(shifts), None
        instances = [start_udf(recipe, k, chunk, rows[k], backends[k]) for k in numbers]
        work(instances, source, shifts)
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
    from udfdask.descan.frame_shifts import FrameShifts  # few runs need it

    rows = rows_of_block(aux[-1], descan.shifts, recipe.grid, chunk, "shifts of descan")
    sig = tuple(recipe.shape.sig)
    return FrameShifts(rows, sig, subpixel=descan.subpixel, fill=descan.fill)
