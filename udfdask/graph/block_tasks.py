"""List the tasks of the blocks of one array of a result: cut out of what the last tasks hold."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from udfdask.backends.backend import DenseBackend
from udfdask.geometry.chunk_grid import Grid, as_index
from udfdask.graph.dask_internals.tasks import OutputTask, Task, TaskRef
from udfdask.graph.task_keys import Key
from udfdask.merge.result_blocks import Cut, fill_block
from udfdask.udf.buffers import BufferSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class NavBlocks:
    """The blocks of an array over nav: one from each chunk, others full of one value."""

    grid: Grid
    """Navigation chunks and ROI."""
    rows: Sequence[Key]
    """For each chunk, the task that holds its rows."""
    flat: bool
    """Whether one task holds all rows, in flattened order."""
    cut: tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]
    """The function that makes a block, and its arguments between the holder and the `Cut`, and
    after that."""
    spec: BufferSpec
    """Declaration of the array."""
    fill: Any
    """Value of the blocks without a chunk."""
    fill_backend: DenseBackend
    """Array backend of those blocks."""
    end: Key | None
    """The task after which they are made; None for any time."""

    def __len__(self) -> int:
        return math.prod(self.grid.numblocks)

    def tasks(self, name: str) -> dict[Key, Task]:
        """Return the tasks of the array by key; `name` is that of the array."""
        grid, zeros = self.grid, (0,) * len(self.spec.extra_shape)
        function, before, after = self.cut
        tasks: dict[Key, Task] = {}
        for c, (source, cut) in enumerate(zip(self.rows, self._cuts(), strict=True)):
            key = (name, *grid.index(c), *zeros)
            tasks[key] = OutputTask(key, function, TaskRef(source), *before, cut, *after)
        if len(tasks) < len(self):
            for place in itertools.product(*map(range, grid.numblocks)):
                key = (name, *place, *zeros)
                if key not in tasks:
                    tasks[key] = self._filled(key, place)
        return tasks

    def _filled(self, key: Key, place: tuple[int, ...]) -> Task:
        """Return the task of a block without a chunk."""
        sizes = tuple(n[i] for n, i in zip(self.grid.nav_chunks, place, strict=True))
        shape = (*sizes, *self.spec.extra_shape)
        block = (fill_block, shape, self.spec.dtype, self.fill, self.fill_backend)
        if self.end is None:
            return Task(key, *block)
        return OutputTask(key, *block, TaskRef(self.end))

    def _cuts(self) -> Iterator[Cut]:
        """Yield where the rows of each chunk are."""
        grid, stop = self.grid, 0
        for c, (source, before) in enumerate(zip(self.rows, (None, *self.rows), strict=False)):
            start = stop if source == before else 0  # chunks that a tree has merged share a source
            stop = start + grid.count(c)
            rows = as_index(grid.rows(c)) if self.flat else slice(start, stop)
            yield Cut(rows, grid.bounds(c)[1], grid.mask(c))


def list_nav_blocks(name: str, blocks: NavBlocks) -> dict[Key, Task]:
    """Return the tasks of an array over nav by key."""
    return blocks.tasks(name)


def list_only_block(key: Key, *task: Any) -> dict[Key, Task]:
    """Return the task of an array with one block by key."""
    return {key: OutputTask(key, *task)}
