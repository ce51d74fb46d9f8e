"""The layers of a graph whose tasks see the data: one task per chunk, or per signal chunk of it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np

from udfdask.chunk.run_chunk import run_chunk, run_part
from udfdask.graph.dask_internals import BlockLayer, OutputTask, Task, TaskLayer, TaskRef
from udfdask.plan.device_groups import Group
from udfdask.plan.recipe import Recipe

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkLayerInfo:
    """What the tasks of a layer see."""

    array_name: str
    """Name of the dask array with the data."""
    recipe: Recipe
    """What is done to them."""
    chunks: dict[Key, int]
    """The chunk that each task sees, all of it or a signal chunk of it."""
    group: Group | None = None
    """The UDFs that the tasks run, if these are not all or need a device."""


class ChunkTasks(TaskLayer):
    """Chunk tasks written out; `visits` says what they see."""

    def __init__(self, mapping: Mapping[Key, Task], visits: ChunkLayerInfo) -> None:
        super().__init__(mapping)
        self.visits = visits


class ChunkBlockwise(BlockLayer):
    """Chunk tasks as a blockwise layer, one per block; `visits` says what they see."""

    def __init__(
        self, name: str, recipe: Recipe, array: da.Array, shared: Any, group: Group | None
    ) -> None:
        # `shared`: what tasks are given as their recipe
        self.recipe = recipe
        self.group = group
        self.array_name = array.name
        arguments = (shared, self.BLOCK, self.INDEX, *rest_of(None, group))
        super().__init__(name, array, _run_block, *arguments)

    def as_tasks(
        self,
        shared: Any,
        data: Mapping[Key, Any] | None = None,
        aux: Sequence[Any] | None = None,
        *,
        alone: bool = True,
    ) -> ChunkTasks:
        """Return the layer written out; `shared` is what tasks are given as their recipe.

        `aux` holds the aux data of each chunk. Unless they are `alone` in reading their blocks,
        tasks are not fused with what loads these.
        With `data`, the blocks of an array that lie in the graph themselves, tasks hold their
        block: dask would fuse them at the cost of an alias and a small graph for each, and its
        local schedulers take quadratic time to start where they are not fused. Then aux data would
        be fused with them, which may be made on any worker.
        """
        kind = Task if alone and (data is None or aux is None) else OutputTask
        tasks: dict[Key, Task] = {}
        visits = self.visits
        for key, chunk in visits.chunks.items():
            source = (self.array_name, *key[1:])
            block = TaskRef(source) if data is None else data[source]
            rest = rest_of(None if aux is None else aux[chunk], self.group)
            tasks[key] = kind(key, _run_block, shared, block, key[1:], *rest)
        return ChunkTasks(tasks, visits)

    @property
    def visits(self) -> ChunkLayerInfo:
        """What the tasks see."""
        grid, name = self.recipe.grid, self.output
        blocks = list(itertools.product(*(range(len(c)) for c in self.recipe.sig_chunks)))
        chunks = {
            (name, *place, *block): c
            for c in range(grid.n_chunks)
            for place in [grid.index(c)]
            for block in blocks
        }
        return ChunkLayerInfo(
            array_name=self.array_name, recipe=self.recipe, chunks=chunks, group=self.group
        )


def rest_of(aux: Any, group: Group | None) -> tuple[Any, ...]:
    """Return the last arguments of a chunk task, of which most have none: less to send."""
    if group is not None:
        return (() if aux is None else aux, group)
    return () if aux is None else (aux,)


def _run_block(
    recipe: Recipe,
    block: Any,
    index: tuple[int, ...],
    aux: Sequence[Any] = (),
    group: Group | None = None,
) -> Any:
    """Run a chunk that is one block, or one block of it; `index` is its place in dask's grid."""
    recipe = recipe.now
    n_nav = len(recipe.grid.shape)
    chunk = recipe.grid.chunk_at(index[:n_nav])
    if recipe.by_sig_chunk:
        counts = [len(sizes) for sizes in recipe.sig_chunks]
        number = int(np.ravel_multi_index(index[n_nav:], counts))
        return run_part(recipe, chunk, number, block, aux, group)
    return run_chunk(recipe, chunk, (block,), aux, group)
