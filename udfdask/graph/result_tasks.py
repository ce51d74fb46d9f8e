"""The tasks that make the arrays of results: rows, blocks, and final arrays."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from udfdask.backends.backend import DenseBackend
from udfdask.geometry.chunk_grid import Grid, as_index
from udfdask.geometry.tiling import without_caches
from udfdask.graph.dask_internals.arrays import make_array
from udfdask.graph.dask_internals.layers import LazyLayer, TaskLayer
from udfdask.graph.dask_internals.tasks import Key, OutputTask, Task, TaskRef
from udfdask.graph.run_layers import layers_of_keys
from udfdask.merge.result_blocks import (
    Cut,
    assemble,
    backend_holding,
    fill_block,
    holder_of,
    nav_block,
    reduced_block,
    visited_block,
)
from udfdask.types import AnyArray
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


def list_only_block(key: Key, *task: Any) -> dict[Key, Task]:
    """Return the task of an array with one block by key."""
    return {key: OutputTask(key, *task)}


Arrays = tuple[dict[str, AnyArray], dict[str, AnyArray]]
"""Results by name, and their valid masks."""

FLAG = np.dtype(bool)


@dataclass(frozen=True, kw_only=True)
class ResultTasks:
    """The tasks that hold the results of one UDF, and the facts about these results."""

    graph: HighLevelGraph
    """All layers that the tasks need."""
    rows: Sequence[Key]
    """For each chunk, the task that holds its rows of nav results; empty if there are none."""
    rows_only: Sequence[Key]
    """Tasks with the same rows and little else, in the order of chunks."""
    reduced: Key | None
    """The task that holds sig and single results."""
    number: int
    """Number of the UDF in the run."""
    finalized: bool
    """Whether the tasks hold results of `get_results`."""
    flat: bool
    """Whether one task holds all rows, in flattened order instead of the order of the chunks."""
    grid: Grid
    """Navigation chunks and ROI."""
    sig: tuple[int, ...]
    """Shape of a frame."""
    specs: dict[str, BufferSpec]
    """Declarations of the results by name."""
    result_backend: DenseBackend
    """Array backend of the blocks; blocks whose dtype it lacks are NumPy arrays."""
    udf_name: str
    """Name of the UDF's class."""
    token: str
    """Part of the names of arrays."""

    def __getstate__(self) -> dict[str, Any]:
        return without_caches(self)

    @property
    def keys(self) -> list[Key]:
        """Keys of the tasks that a `Result` is computed from."""
        return list(dict.fromkeys((*self.rows_only, *((self.reduced,) if self.reduced else ()))))

    def with_graph(self, graph: Any, rename: Mapping[str, str]) -> ResultTasks:
        """Return the same tasks in another graph, which needs to hold `keys` and their inputs only.

        `rename` maps old to new names of layers.
        """

        def renamed(key: Key) -> Key:
            return (rename.get(key[0], key[0]), *key[1:])

        rows_only = tuple(map(renamed, self.rows_only))
        # one task of `rows_only` for each different task of `rows`
        new = dict(zip(dict.fromkeys(self.rows), rows_only, strict=True))
        reduced = None if self.reduced is None else renamed(self.reduced)
        if not isinstance(graph, HighLevelGraph):
            names = {key[0] for key in (*rows_only, *((reduced,) if reduced else ()))}
            graph = _in_one_layer(graph, names)
        token = tokenize(self.token, sorted(rename.items())) if rename else self.token
        return replace(
            self,
            graph=graph,
            rows=tuple(new[key] for key in self.rows),
            rows_only=rows_only,
            reduced=reduced,
            token=token,
        )

    def array(self, name: str) -> da.Array:
        """Return a result as a dask array."""
        spec = self.specs[name]
        return self._array_of(name, spec.kind, False, spec)

    def mask(self, name: str) -> da.Array:
        """Return the valid mask of a result of `get_results` as a dask array."""
        return self._array_of(name, "mask", True, replace(self.specs[name], dtype=FLAG))

    def _array_of(self, name: str, stage: str, of_mask: bool, spec: BufferSpec) -> da.Array:
        """Return a result or its valid mask as a dask array with the dtype of `spec`."""
        layer = self._name(stage, name)
        if spec.kind == "nav":
            fill = False if of_mask else spec.fill
            cut = (nav_block, (self.number, name, of_mask), (fill, self.result_backend))
            return self._nav_array(layer, cut, spec, fill)
        assert self.reduced is not None
        shape = spec.extra_shape if spec.kind == "single" else spec.shape(0, self.sig)
        key = (layer, *(0 for _ in shape))
        block = (TaskRef(self.reduced), name, of_mask, spec, self.result_backend)
        only = LazyLayer(1, list_only_block, key, reduced_block, *block)
        return self._array(layer, only, {self.reduced[0]}, tuple((n,) for n in shape), spec.dtype)

    def visited(self) -> da.Array:
        """Return a dask array of True over nav, whose blocks run a UDF without results."""
        cut = (visited_block, (), (self.result_backend,))
        spec = BufferSpec(kind="nav", extra_shape=(), dtype=FLAG)
        return self._nav_array(self._name("visited"), cut, spec, False)

    def gather(self) -> tuple[Callable[..., Arrays], tuple[Any, ...]]:
        """Return a function that makes arrays and masks of the values of `keys`.

        Also return its other arguments, as `__dask_postcompute__` does.
        """
        place = None if self.reduced is None else self.keys.index(self.reduced)
        return _gather, (self.grid, self.sig, self.specs, self.number, len(self.rows_only), place)

    def _name(self, stage: str, *rest: str) -> str:
        """Return the name of an array, as dask shows it."""
        token = tokenize(self.token, stage, rest)  # names of results may differ in case only
        return "-".join([self.udf_name, *rest, stage, token]).lower()

    def _nav_array(
        self,
        name: str,
        cut: tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]],
        spec: BufferSpec,
        fill: Any,
    ) -> da.Array:
        """Return a dask array over nav: a block from each chunk, `fill` for other blocks."""
        blocks = NavBlocks(
            grid=self.grid,
            rows=self.rows,
            flat=self.flat,
            cut=cut,
            spec=spec,
            fill=fill,
            fill_backend=backend_holding(self.result_backend, spec.dtype),
            # with an empty ROI, get_results still runs
            end=self.reduced if self.finalized and not len(self.rows) else None,
        )
        layer = LazyLayer(len(blocks), NavBlocks.tasks, blocks, name)
        depends = layers_of_keys(self.rows, [blocks.end] if blocks.end else [])
        chunks = (*self.grid.nav_chunks, *((n,) for n in spec.extra_shape))
        return self._array(name, layer, depends, chunks, spec.dtype)

    def _array(
        self,
        name: str,
        layer: LazyLayer,
        depends: set[str],
        chunks: tuple[tuple[int, ...], ...],
        dtype: np.dtype[Any],
    ) -> da.Array:
        """Return a dask array whose graph holds only the layers that it needs."""
        needed = layers_of(self.graph.layers, self.graph.dependencies, depends)
        graph = HighLevelGraph(
            {**needed.layers, name: layer}, {**needed.dependencies, name: depends}
        )
        empty = backend_holding(self.result_backend, dtype).empty((0,) * len(chunks), dtype)
        made: da.Array = make_array(graph, name, chunks, empty)
        return made


def layers_of(
    layers: Mapping[str, Any], dependencies: Mapping[str, Iterable[str]], names: Iterable[str]
) -> HighLevelGraph:
    """Return the graph of some layers and of all layers that they need."""
    needed: dict[str, Any] = {}
    todo = list(names)
    while todo:
        name = todo.pop()
        if name not in needed:
            needed[name] = layers[name]
            todo.extend(dependencies[name])
    return HighLevelGraph(needed, {name: set(dependencies[name]) for name in needed})


def _in_one_layer(tasks: Mapping[Any, Any], names: set[str]) -> HighLevelGraph:
    """Return a graph with all tasks in the first of some layers; the others are empty."""
    first, *others = sorted(names)
    layers = {first: TaskLayer(tasks)} | {name: TaskLayer({}) for name in others}
    return HighLevelGraph(layers, {name: {first} - {name} for name in layers})


def _gather(
    values: list[Any],
    grid: Grid,
    sig: tuple[int, ...],
    specs: Mapping[str, BufferSpec],
    number: int,
    n_rows: int,
    reduced: int | None,
) -> Arrays:
    """Return results and valid masks from the values of tasks; `reduced` is the place of one."""
    holders = [holder_of(value, number) for value in values]
    merged = None if reduced is None else holders[reduced]
    return assemble(grid, sig, specs, holders[:n_rows], merged)
