"""Run UDFs with a halo over one chunk, in two tasks: when it is loaded, and when margins have come.

The task that loads a chunk processes all positions whose windows lie in it, and then lets it go. It
keeps the frames at its borders, and cuts the margins that other chunks need. The second task makes
the windows at the borders from these and from the margins of other chunks. UDFs without a halo are
processed by the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from udfdask.backends.backend import Backend
from udfdask.backends.sparse_rows import SparseRows
from udfdask.backends.table import backend_of, check_block
from udfdask.chunk.frames import converted_blocks, signal_windows
from udfdask.chunk.neighborhoods.process_boxes import Neighbors, process_boxes
from udfdask.chunk.neighborhoods.stored_frames import (
    AuxStores,
    StoredFrames,
    checked_values,
)
from udfdask.chunk.partial_result import Partial, Partials, Sized
from udfdask.chunk.run_chunk import aux_rows, end_udf, run_chunk, start_udf
from udfdask.chunk.task_context import chunk_context
from udfdask.chunk.udf_instance import Instance
from udfdask.geometry.halo import Box, box_of, divide, margin, own_pieces
from udfdask.plan.recipe import DESCAN, Group, Recipe
from udfdask.types import AnyArray
from udfdask.udf.base import overrides

Index = tuple[int, ...]
"""Place of a chunk in dask's grid of chunks."""

Margin = tuple[StoredFrames, ...]
"""Frames of a chunk that another chunk needs."""


@dataclass(frozen=True, eq=False)
class LoadedChunk(Sized):
    """What is left of a chunk after the task that loads it."""

    partials: Partials
    """Partial results; None for UDFs of another group and those that have processed nothing."""
    unfinished: tuple[int, ...]
    """Numbers of the UDFs that still have to process the positions at the borders of the chunk."""
    borders: Margin
    """The frames that their windows need; all frames of the chunk if a UDF keeps them."""
    margins: Mapping[int, Margin]
    """Frames that other chunks need, by their numbers."""

    @property
    def nbytes(self) -> int:
        """Size in bytes; margins are mostly views of the borders."""
        frames = self.borders
        if not frames:
            frames = tuple(store for margin in self.margins.values() for store in margin)
        partials = [partial for partial in self.partials if partial is not None]
        return sum(store.nbytes for store in frames) + sum(partial.nbytes for partial in partials)


def load_chunk(
    recipe: Recipe,
    index: Index,
    needed_by: Sequence[int],
    blocks: Sequence[Any],
    aux: Sequence[Any] = (),
    group: Group | None = None,
) -> LoadedChunk:
    """Process the positions of a chunk whose windows lie in it, and cut margins.

    `index` is its place in dask's grid of chunks: it may have no selected frame. `needed_by` has
    the numbers of the chunks that need frames of it. `blocks` and `aux` are those of `run_chunk`.
    """
    recipe = recipe.now
    grid = recipe.grid
    numbers = range(len(recipe.udfs)) if group is None else group.numbers
    with_halo = [k for k in numbers if recipe.udfs[k].halo is not None]
    kinds = [backend_of(block) for block in blocks]
    backends = recipe.backends_over(kinds[0])
    partials: dict[int, Partial | None] = {}
    unfinished: list[int] = []
    borders: list[Box] = []
    keeps_all = False
    with chunk_context(recipe, numbers, backends, kinds):
        frames = _stored(recipe, index, blocks, kinds)
        if grid.has_selected(index):
            chunk = grid.chunk_at(index)
            if len(with_halo) < len(numbers):
                others = Group(
                    numbers=tuple(k for k in numbers if k not in with_halo),
                    names=(),
                    needs_cuda=False,
                )
                partials.update(enumerate(run_chunk(recipe, chunk, blocks, aux, others)))
            held = [None if block is None else {index: block} for block in aux]
            stored_aux = _all_aux(recipe, held, range(len(recipe.udfs)))
            neighbors = Neighbors(frames={index: (frames,)}, aux=stored_aux)
            rows = aux_rows(recipe, chunk, aux, with_halo)
            for number in with_halo:
                halo = recipe.udfs[number].halo
                assert halo is not None
                division = divide(halo, chunk, grid)
                if division.seams and recipe.keeps_chunks(number):
                    unfinished.append(number)
                    keeps_all = True
                    continue
                instance = start_udf(recipe, number, chunk, rows[number], backends[number])
                process_boxes(instance, division.inside, chunk, neighbors)
                if division.seams:
                    unfinished.append(number)
                    borders += own_pieces(halo, chunk, grid)
                    partials[number] = _so_far(instance)
                else:
                    partials[number] = end_udf(instance)
        halos = recipe.halos(numbers)
        cut = (frames.cut(box) for box in dict.fromkeys(borders))
        at_borders = (frames,) if keeps_all else tuple(cut)
        return LoadedChunk(
            partials=tuple(partials.get(k) for k in range(len(recipe.udfs))),
            unfinished=tuple(unfinished),
            borders=at_borders,
            margins={
                other: tuple(
                    _margin(frames, at_borders, box) for box in margin(halos, other, index, grid)
                )
                for other in needed_by
            },
        )


def finish_chunk(
    recipe: Recipe,
    chunk: int,
    loaded: LoadedChunk,
    margins_of_others: Mapping[Index, Margin],
    aux: Sequence[Mapping[Index, Any] | None] = (),
    group: Group | None = None,
) -> Partials:
    """Return the partial results of a chunk, after the positions at its borders.

    `margins_of_others` has the frames that the chunk needs of others, by their index. `aux` holds
    the values of these chunks and of the chunk itself, for each of `recipe.aux_slots`. A `group`
    finishes some UDFs only.
    """
    recipe = recipe.now
    if not loaded.unfinished:
        return loaded.partials
    index = recipe.grid.index(chunk)
    first = loaded.borders[0]
    stores = {index: loaded.borders, **margins_of_others}
    own = [None if values is None else values[index] for values in aux]
    numbers = [k for k in loaded.unfinished if group is None or k in group.numbers]
    # the frames have been converted to one backend
    kinds: list[Backend] = [
        block.backend if isinstance(block, SparseRows) else backend_of(block)
        for block in first.blocks
    ]
    backends = recipe.backends_over(kinds[0])
    done = [None if k in loaded.unfinished else p for k, p in enumerate(loaded.partials)]
    with chunk_context(recipe, numbers, backends, kinds):
        neighbors = Neighbors(frames=stores, aux=_all_aux(recipe, aux, numbers))
        rows = aux_rows(recipe, chunk, own, numbers)
        for number in numbers:
            halo, before = recipe.udfs[number].halo, loaded.partials[number]
            assert halo is not None
            instance = start_udf(recipe, number, chunk, rows[number], backends[number])
            division = divide(halo, chunk, recipe.grid)
            if before is None:
                process_boxes(instance, division.inside, chunk, neighbors)
            else:
                for name, array in before.arrays.items():
                    instance.arrays[name][...] = array
            process_boxes(instance, division.seams, chunk, neighbors)
            done[number] = _together(before, end_udf(instance))
    return tuple(done)


def _stored(
    recipe: Recipe, index: Index, blocks: Sequence[Any], kinds: Sequence[Backend]
) -> StoredFrames:
    """Return the frames of a chunk, after checks."""
    grid, box = recipe.grid, box_of(recipe.grid, index)
    native, converted = converted_blocks(blocks, kinds, len(grid.shape), len(recipe.sig_chunks))
    nav = tuple(stop - first for first, stop in box)
    held: list[Any] = []
    for window, block in zip(signal_windows(recipe.sig_chunks), converted, strict=True):
        shape = (*nav, *(w.stop - w.start for w in window))
        check_block(block, shape, recipe.dtype, "a chunk")
        held.append(
            native.frames(block, len(nav))  # type: ignore[attr-defined]
            if native.is_sparse
            else native.dense.read_only(block)
        )
    return StoredFrames(box, tuple(held), recipe.sig_chunks, native.dense)


def _margin(frames: StoredFrames, borders: Margin, box: Box) -> StoredFrames:
    """Return frames that another chunk needs: a view of those that are kept anyway, or a copy."""
    kept = next((border for border in borders if border.holds(box)), None)
    return frames.cut(box) if kept is None else kept.part(box)


def _together(before: Partial | None, after: Partial) -> Partial:
    """Return the partial result of a chunk, with what is known of its first part."""
    if before is None:
        return after
    return replace(after, looked_beyond=before.looked_beyond or after.looked_beyond)


def _so_far(instance: Instance) -> Partial:
    """Return the buffers of a UDF that has not processed all positions of a chunk."""
    looked_beyond = bool(instance.udf.meta._looks)
    if overrides(instance.udf, "cleanup"):  # of this instance; the second task has its own
        instance.call("cleanup")
    return Partial(instance.arrays, *instance.cursor.chunks, {}, looked_beyond)


def _all_aux(
    recipe: Recipe, aux: Sequence[Mapping[Index, Any] | None], numbers: Sequence[int]
) -> AuxStores:
    """Return the aux data of some chunks, after checks; None for UDFs other than `numbers`."""
    found: list[dict[Index, AnyArray] | None] = []
    for (number, name), blocks in zip(recipe.aux_slots, aux, strict=True):
        if blocks is None or number not in (*numbers, DESCAN):
            found.append(None)
            continue
        if number == DESCAN:
            assert recipe.descan is not None
            declared, what = recipe.descan.shifts, "shifts of descan"
        else:
            declared, what = recipe.udfs[number].aux[name], f"aux data params.{name}"
            updated = recipe.udfs[number].kwargs[name]
            if updated.data is not None:
                # a progressive run may have got other values since its tasks were made
                values = updated.over(recipe.shape)
                boxes = {index: box_of(recipe.grid, index) for index in blocks}
                blocks = {  # noqa: PLW2901
                    index: values[tuple(slice(*span) for span in box)]
                    for index, box in boxes.items()
                }
        found.append(
            {
                index: checked_values(block, box_of(recipe.grid, index), declared, what)
                for index, block in blocks.items()
            }
        )
    return found
