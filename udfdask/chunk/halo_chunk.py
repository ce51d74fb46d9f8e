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
from udfdask.chunk.halo_windows import BoxRun, Index, Neighbors, StoredFrames
from udfdask.chunk.partial_result import Partial, Partials, Sized
from udfdask.chunk.run_chunk import aux_rows, aux_values, end_udf, run_chunk, start_udf
from udfdask.chunk.task_context import chunk_context
from udfdask.geometry.halo import Box, box_of, divide, margin, own_pieces
from udfdask.plan.groups import Group
from udfdask.plan.recipe import Recipe
from udfdask.udf.base import overrides

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
        partials = (partial for partial in self.partials if partial is not None)
        return sum(each.nbytes for each in (*frames, *partials))


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
    without = tuple(k for k in numbers if k not in with_halo)
    kinds = [backend_of(block) for block in blocks]
    backends = recipe.backends_over(kinds[0])
    partials: list[Partial | None] = [None] * len(recipe.udfs)
    unfinished: list[int] = []
    borders: list[Box] = []
    with chunk_context(recipe, numbers, backends, kinds):
        frames = _stored(recipe, index, blocks, kinds)
        at_borders: Margin = ()
        if grid.has_selected(index):
            chunk = grid.chunk_at(index)
            if without:
                others = Group(numbers=without, names=(), needs_cuda=False)
                partials = list(run_chunk(recipe, chunk, blocks, aux, others))
            values = aux_values(recipe, index, aux, with_halo)
            rows = aux_rows(recipe, chunk, values)
            neighbors = Neighbors(frames={index: (frames,)}, aux={index: values})
            for number in with_halo:
                halo = recipe.udfs[number].halo
                assert halo is not None
                division = divide(halo, chunk, grid)
                if division.seams:
                    unfinished.append(number)
                    if recipe.keeps_chunks(number):
                        at_borders = (frames,)
                        continue
                    borders += own_pieces(halo, chunk, grid)
                instance = start_udf(recipe, number, chunk, rows.get(number, {}), backends[number])
                BoxRun(instance, chunk, neighbors).process(division.inside)
                if not division.seams:
                    partials[number] = end_udf(instance)
                    continue
                looks = bool(instance.udf.meta._looks)
                if overrides(instance.udf, "cleanup"):  # the second task has its own instance
                    instance.call("cleanup")
                partials[number] = Partial(instance.arrays, chunk, chunk + 1, {}, looks)
        halos = recipe.halos(numbers)
        at_borders = at_borders or tuple(
            frames.part(box, copy=True) for box in dict.fromkeys(borders)
        )
        margins = {}
        for other in needed_by:
            boxes = margin(halos, other, index, grid)
            margins[other] = tuple(_margin(frames, at_borders, box) for box in boxes)
        return LoadedChunk(tuple(partials), tuple(unfinished), at_borders, margins)


def finish_chunk(
    recipe: Recipe,
    chunk: int,
    loaded: LoadedChunk,
    margins_of_others: Mapping[Index, Margin],
    aux: Mapping[Index, Sequence[Any]] | None = None,
    group: Group | None = None,
) -> Partials:
    """Return the partial results of a chunk, after the positions at its borders.

    `margins_of_others` has the frames that the chunk needs of others, by their index. `aux` holds
    the values of `recipe.aux_slots` for these chunks and the chunk itself, by index, if there are
    any. A `group` finishes some UDFs only.
    """
    recipe = recipe.now
    if not loaded.unfinished:
        return loaded.partials
    index = recipe.grid.index(chunk)
    numbers = [k for k in loaded.unfinished if group is None or k in group.numbers]
    # the frames have been converted to one backend
    kinds: list[Backend] = [
        block.backend if isinstance(block, SparseRows) else backend_of(block)
        for block in loaded.borders[0].blocks
    ]
    backends = recipe.backends_over(kinds[0])
    done = [None if k in loaded.unfinished else p for k, p in enumerate(loaded.partials)]
    with chunk_context(recipe, numbers, backends, kinds):
        stores = {index: loaded.borders, **margins_of_others}
        given = aux or {index: ()}
        values = {k: aux_values(recipe, k, blocks, numbers) for k, blocks in given.items()}
        neighbors = Neighbors(frames=stores, aux=values)
        rows = aux_rows(recipe, chunk, values[index])
        for number in numbers:
            halo, before = recipe.udfs[number].halo, loaded.partials[number]
            assert halo is not None
            instance = start_udf(recipe, number, chunk, rows.get(number, {}), backends[number])
            division = divide(halo, chunk, recipe.grid)
            boxes = division.seams
            if before is None:
                boxes = (*division.inside, *division.seams)
            else:
                for name, array in before.arrays.items():
                    instance.arrays[name][...] = array
            BoxRun(instance, chunk, neighbors).process(boxes)
            after = end_udf(instance)
            if before is not None:  # what is known of the first part
                looked_beyond = before.looked_beyond or after.looked_beyond
                after = replace(after, looked_beyond=looked_beyond)
            done[number] = after
    return tuple(done)


def _stored(
    recipe: Recipe, index: Index, blocks: Sequence[Any], kinds: Sequence[Backend]
) -> StoredFrames:
    box = box_of(recipe.grid, index)
    native, converted = kinds[0], converted_blocks(blocks, kinds)
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
    return frames.part(box, copy=True) if kept is None else kept.part(box)
