"""The layers of a graph whose tasks see the data: one task per chunk, or per signal chunk of it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from dask._task_spec import Task, TaskRef
from dask.blockwise import BlockIndex, Blockwise, blockwise_token
from dask.highlevelgraph import MaterializedLayer

from udfdask.chunk.run_chunk import run_chunk, run_part
from udfdask.graph.unfused_task import OutputTask
from udfdask.plan.device_groups import Group
from udfdask.plan.recipe import Recipe

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Visits:
    """What the tasks of a layer see."""

    array_name: str
    """Name of the dask array with the data."""
    recipe: Recipe
    """What is done to them."""
    chunks: dict[Key, int]
    """The chunk that each task sees, all of it or a signal chunk of it."""
    group: Group | None = None
    """The UDFs that the tasks run, if these are not all or need a device."""


class ChunkTasks(MaterializedLayer):
    """Chunk tasks written out; `visits` says what they see."""

    def __init__(self, mapping: Mapping[Key, Task], visits: Visits) -> None:
        super().__init__(mapping)
        self.visits = visits


class ChunkBlockwise(Blockwise):
    """One task per block as a blockwise layer, which dask fuses with the loading of the block.

    Fused there, a task costs the local schedulers half of what it costs when tasks written out are
    fused: no alias is left behind (10,000 tiny chunks on two threads: 5.1 to 3.5 s). All axes
    stay output axes, since dask fuses no contraction. A recipe that is a task is an input without
    axes, which does not keep dask from this; tasks written out with two inputs it would not fuse.
    """

    def __init__(
        self, name: str, recipe: Recipe, array: da.Array, shared: Any, group: Group | None
    ) -> None:
        # `shared`: what tasks are given as their recipe
        axes: Any = tuple(range(array.ndim))
        self.recipe = recipe
        self.group = group
        self.array_name = array.name
        source = array.dask.layers[array.name]
        # tasks work out their chunk from the index, which also blocks without a selected frame have
        inputs: list[Any] = [(array.name, axes), (BlockIndex(array.numblocks), axes)]
        if isinstance(shared, TaskRef):
            inputs.append((shared, None))
            shared = _token(2)
        super().__init__(
            name,
            axes,
            Task(name, _run_block, shared, _token(0), _token(1), *rest_of(None, group)),
            inputs,
            numblocks={array.name: array.numblocks},
            concatenate=getattr(source, "concatenate", None),
        )

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
    def visits(self) -> Visits:
        """What the tasks see."""
        grid, name = self.recipe.grid, self.output
        blocks = list(itertools.product(*(range(len(c)) for c in self.recipe.sig_chunks)))
        chunks = {
            (name, *place, *block): c
            for c in range(grid.n_chunks)
            for place in [grid.index(c)]
            for block in blocks
        }
        return Visits(
            array_name=self.array_name, recipe=self.recipe, chunks=chunks, group=self.group
        )


def rest_of(aux: Any, group: Group | None) -> tuple[Any, ...]:
    """Return the last arguments of a chunk task, of which most have none: less to send."""
    if group is not None:
        return (() if aux is None else aux, group)
    return () if aux is None else (aux,)


def _token(number: int) -> TaskRef:
    """Return dask's placeholder for an input of a blockwise layer."""
    return TaskRef(blockwise_token(number))


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
