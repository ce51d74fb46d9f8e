"""The layers of a graph whose tasks see the data: one task per chunk, or per signal chunk of it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import dask.array as da
from dask._task_spec import Task, TaskRef
from dask.blockwise import Blockwise, BlockwiseDepDict, blockwise_token
from dask.highlevelgraph import MaterializedLayer

from udfdask.chunk import run_chunk
from udfdask.recipe import Recipe

Key = tuple[Any, ...]


class ChunkTasks(MaterializedLayer):
    """Chunk tasks written out, `per_chunk` of them for each chunk."""

    def __init__(self, mapping: Mapping[Key, Task], recipe: Recipe, per_chunk: int) -> None:
        super().__init__(mapping)
        self.recipe = recipe
        self.per_chunk = per_chunk

    def replaced(self, mapping: Mapping[Key, Task]) -> ChunkTasks:
        """Return the same layer with other tasks under the same keys."""
        return ChunkTasks(mapping, self.recipe, self.per_chunk)

    def frames(self) -> dict[Key, float]:
        """Return how many frames each task is worth."""
        counts = self.recipe.grid.counts
        n = len(self.recipe.grid.shape)
        numbers = {self.recipe.grid.index(c): c for c in range(self.recipe.grid.n_chunks)}
        found = {}
        for key in self.mapping:
            chunk = numbers[key[1 : 1 + n]] if self.per_chunk == 0 else key[1]
            found[key] = float(counts[chunk]) / max(1, self.per_chunk)
        return found


class ChunkBlockwise(Blockwise):
    """One task per chunk as a blockwise layer, which dask fuses with the loading of the block.

    Fused there, a task costs the local schedulers half of what it costs when tasks written out are
    fused: no alias is left behind (10,000 tiny chunks on two threads: 5.1 to 3.5 s). All axes
    stay output axes, the signal ones with a single block each, since dask fuses no contraction.
    """

    def __init__(self, name: str, recipe: Recipe, array: da.Array) -> None:
        grid = recipe.grid
        axes: Any = tuple(range(array.ndim))
        chunks = dict.fromkeys(itertools.product(*map(range, grid.numblocks)), -1)
        chunks.update({grid.index(c): c for c in range(grid.n_chunks)})
        numbers = BlockwiseDepDict(chunks, numblocks=grid.numblocks)
        source = array.dask.layers[array.name]
        super().__init__(
            name,
            axes,
            Task(name, _run_block, recipe, _token(0), _token(1)),
            [(array.name, axes), (numbers, axes[: len(grid.shape)])],
            numblocks={array.name: array.numblocks},
            concatenate=getattr(source, "concatenate", None),
        )
        self.recipe = recipe
        self.array_name = array.name

    def chunk_keys(self) -> list[Key]:
        """Return the key of each chunk's task."""
        grid = self.recipe.grid
        zeros = (0,) * self.recipe.shape.sig_dims
        return [(self.output, *grid.index(c), *zeros) for c in range(grid.n_chunks)]

    def as_tasks(self, recipe: Any) -> ChunkTasks:
        """Return the layer written out, with a reference in place of the recipe."""
        tasks = {
            key: Task(key, _run_block, recipe, TaskRef((self.array_name, *key[1:])), c)
            for c, key in enumerate(self.chunk_keys())
        }
        return ChunkTasks(tasks, self.recipe, 0)

    def frames(self) -> dict[Key, float]:
        """Return how many frames each task is worth."""
        counts = self.recipe.grid.counts.tolist()
        return dict(zip(self.chunk_keys(), counts, strict=True))


def _token(number: int) -> TaskRef:
    """Return dask's placeholder for an input of a blockwise layer."""
    return TaskRef(blockwise_token(number))


def _run_block(recipe: Recipe, block: Any, chunk: int) -> Any:
    """Run a chunk that is one block."""
    return run_chunk(recipe, chunk, (block,))
