"""The layers of a graph whose tasks read the data: one task per chunk, or per signal chunk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import dask.array as da
import numpy as np

from udfdask.chunk.partial_result import Partials
from udfdask.graph.dask_internals.layers import BlockLayer, ListedTasks
from udfdask.graph.dask_internals.tasks import OutputTask, Task, TaskRef
from udfdask.graph.task_keys import BlockKeys, Key
from udfdask.plan.device_groups import Group
from udfdask.plan.recipe import Recipe
from udfdask.tracebacks import hides_own_lines

PLACED_LAYER = "on-workers-"
"""Part of the names of layers whose tasks can load data only on some workers."""


class Recording(Protocol):
    """Runs a chunk task that stores its partial results; `records.recording` has it."""

    def run(
        self,
        recipe: Recipe,
        chunk: int,
        group: Group | None,
        run: Callable[[Group | None], Partials],
    ) -> Partials:
        """Run the UDFs that are not stored with `run`, and read the results of the others."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkLayerInfo:
    """What the tasks of a layer process: progress and worker restrictions are derived from it."""

    array_name: str
    """Name of the dask array with the data."""
    recipe: Recipe
    """Recipe of the run."""
    chunks: dict[Key, int]
    """The chunk that each task processes, or of which it processes a signal chunk."""
    group: Group | None = None
    """The UDFs that the tasks run; None for all UDFs of a run that needs no device."""
    aux: tuple[Any, ...] = ()
    """Values of each of `recipe.aux_slots`."""
    blocks: Mapping[Key, Any] | None = None
    """The blocks of data in memory, which each task holds itself."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers of the UDFs that the tasks run."""
        return tuple(range(len(self.recipe.udfs))) if self.group is None else self.group.numbers


class ChunkTasks(ListedTasks):
    """Chunk tasks that are listed one by one."""

    def __init__(self, mapping: Mapping[Key, Task], info: ChunkLayerInfo) -> None:
        super().__init__(mapping)
        self.info = info
        self.group = info.group


class ChunkBlockwise(BlockLayer):
    """Chunk tasks as a blockwise layer, one per block."""

    # `recipe_argument` is the recipe or a reference to its task, see `RunLayers`
    def __init__(
        self,
        name: str,
        recipe: Recipe,
        array: da.Array,
        recipe_argument: Any,
        group: Group | None,
    ) -> None:
        self.recipe = recipe
        self.group = group
        self.array_name = array.name
        # Tasks get their place in the grid of blocks and compute their chunk from it.
        arguments = (recipe_argument, self.BLOCK, self.INDEX, *optional_arguments(None, group))
        super().__init__(name, array, _run_block, *arguments)

    def as_tasks(
        self,
        recipe_argument: Any,
        data: Mapping[Key, Any] | None = None,
        aux: Sequence[Any] | None = None,
        *,
        values: tuple[Any, ...] = (),
        fusible: bool = True,
    ) -> ChunkTasks:
        """Return the layer as tasks that are listed one by one.

        `aux` holds the aux data of each chunk, and `values` those of all chunks. `fusible` tasks
        may be fused with the loading of their block. `data` holds the blocks of an array whose
        blocks are in the graph themselves.
        """
        # With `data`, each task holds its block. dask would fuse the two at the cost of an alias
        # and a small graph for each task, and its local schedulers take quadratic time to start if
        # they are not fused. A task with its block and aux data must not be fused with the aux
        # data, which any worker may compute.
        kind = Task if fusible and (data is None or aux is None) else OutputTask
        tasks: dict[Key, Task] = {}
        info = replace(self.info, aux=values, blocks=data)
        for key, chunk in info.chunks.items():
            source = (self.array_name, *key[1:])
            block = TaskRef(source) if data is None else data[source]
            rest = optional_arguments(None if aux is None else aux[chunk], self.group)
            tasks[key] = kind(key, _run_block, recipe_argument, block, key[1:], *rest)
        return ChunkTasks(tasks, info)

    @property
    def task_keys(self) -> BlockKeys:
        """Keys of the tasks; those of a chunk are neighbors."""
        sig_blocks = tuple(map(len, self.recipe.sig_chunks))
        return BlockKeys(self.output, self.recipe.grid, sig_blocks)

    @property
    def info(self) -> ChunkLayerInfo:
        """What the tasks process."""
        n_blocks = self.recipe.n_blocks
        return ChunkLayerInfo(
            array_name=self.array_name,
            recipe=self.recipe,
            chunks={key: number // n_blocks for number, key in enumerate(self.task_keys)},
            group=self.group,
        )


def optional_arguments(aux: Any, group: Group | None) -> tuple[Any, ...]:
    """Return the last arguments of a chunk task; most tasks have none, so that less is sent."""
    if group is not None:
        return (() if aux is None else aux, group)
    return () if aux is None else (aux,)


@hides_own_lines
def _run_block(
    recipe: Recipe,
    block: Any,
    index: tuple[int, ...],
    aux: Sequence[Any] = (),
    group: Group | None = None,
    records: Recording | None = None,
) -> Any:
    """Run a chunk of one block, or a signal chunk; `index` is the place in dask's grid of blocks.

    The chunk and its bounds follow from the index and the runs of equal chunks in `recipe.grid`:
    neither tasks nor recipe grow with the scan.
    """
    from udfdask.chunk.run_chunk import run_chunk, run_part  # clients of clusters run no chunk

    recipe = recipe.now
    n_nav = len(recipe.grid.shape)
    chunk = recipe.grid.chunk_at(index[:n_nav])

    def run(group: Group | None) -> Partials:
        if recipe.by_sig_chunk:
            counts = [len(sizes) for sizes in recipe.sig_chunks]
            number = int(np.ravel_multi_index(index[n_nav:], counts))
            return run_part(recipe, chunk, number, block, aux, group)
        return run_chunk(recipe, chunk, (block,), aux, group)

    return run(group) if records is None else records.run(recipe, chunk, group, run)


@hides_own_lines
def run_blocks(
    recipe: Recipe,
    chunk: int,
    blocks: Sequence[Any],
    aux: Sequence[Any] = (),
    group: Group | None = None,
    records: Recording | None = None,
) -> Any:
    """Run a chunk of several blocks, one per signal chunk."""
    from udfdask.chunk.run_chunk import run_chunk

    def run(group: Group | None) -> Partials:
        return run_chunk(recipe, chunk, blocks, aux, group)

    return run(group) if records is None else records.run(recipe.now, chunk, group, run)
