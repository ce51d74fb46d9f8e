"""The tasks that make the arrays of results: rows, blocks, and final arrays."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from udfdask.backends.backend import DenseBackend
from udfdask.base.types import AnyArray
from udfdask.chunk.result_blocks import (
    Cut,
    assemble,
    backend_holding,
    fill_block,
    holder_of,
    nav_block,
    reduced_block,
    visited_block,
)
from udfdask.geometry.chunk_grid import Grid, as_index
from udfdask.geometry.tiling import without_caches
from udfdask.graph.dask_internals.expressions import as_expression
from udfdask.graph.dask_internals.layers import LazyLayer, TaskLayer
from udfdask.graph.dask_internals.tasks import Key, OutputTask, Task, TaskRef, alias
from udfdask.graph.run_layers import layers_of_keys
from udfdask.udf.buffers import BufferSpec


def _nav_blocks(
    name: str,
    tasks_of_rows: Sequence[Key],
    grid: Grid,
    flat: bool,
    spec: BufferSpec,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    filled: tuple[Any, ...],
) -> dict[Key, Task]:
    """Return the tasks of an array over nav: a block from each chunk, others of one value.

    A block is ``function(holder, cut, *arguments)``; `flat` is that of `ResultTasks`. `filled` has
    the value of other blocks, their array backend, and the key of a task that runs first, if any.
    """
    zeros = (0,) * len(spec.extra_shape)
    tasks: dict[Key, Task] = {}
    for c, (source, cut) in enumerate(_with_cuts(tasks_of_rows, grid, flat)):
        key = (name, *grid.index(c), *zeros)
        tasks[key] = OutputTask(key, function, TaskRef(source), cut, *arguments)
    if len(tasks) < math.prod(grid.numblocks):
        *constant, end = filled
        after = () if end is None else (TaskRef(end),)
        for place in itertools.product(*map(range, grid.numblocks)):
            key = (name, *place, *zeros)
            if key not in tasks:
                shape = (*grid.bounds_at(place)[1], *spec.extra_shape)
                tasks[key] = OutputTask(key, fill_block, shape, spec.dtype, *constant, *after)
    return tasks


def _with_cuts(rows: Sequence[Key], grid: Grid, flat: bool) -> Iterator[tuple[Key, Cut]]:
    """Yield the task with the rows of each chunk, and where they are in its value."""
    stop, before = 0, None
    for c in range(grid.n_chunks):
        source = rows[0 if flat else c]
        start = stop if source == before else 0  # chunks that a tree has merged share a source
        stop, before = start + grid.count(c), source
        index = as_index(grid.rows(c)) if flat else slice(start, stop)
        yield source, Cut(index, grid.bounds(c)[1], grid.mask(c))


def _only_block(name: str, n_axes: int, *task: Any) -> dict[Key, Task]:
    """Return the task of an array with one block by key."""
    key = (name, *(0,) * n_axes)
    return {key: OutputTask(key, *task)}


def _aliases(name: str, keys: Sequence[Key]) -> dict[Key, Any]:
    """Return the tasks of `ResultTasks.holders`."""
    return {(name, n): alias((name, n), key) for n, key in enumerate(keys)}


Arrays = tuple[dict[str, AnyArray], dict[str, AnyArray]]
"""Results by name, and their valid masks."""

FLAG = np.dtype(bool)


@dataclass(frozen=True, kw_only=True)
class ResultTasks:
    """The tasks that hold the results of one UDF, and the facts about these results."""

    graph: HighLevelGraph
    """All layers that the tasks need."""
    rows: Sequence[Key]
    """For each chunk, the task that holds its rows of nav results; one if `flat`, maybe none."""
    rows_only: Sequence[Key]
    """Tasks with the same rows and little else, in the order of chunks; fewer if there are very
    many."""
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
    are_expressions: bool
    """Whether arrays are those of dask-array, as the data are."""

    def __getstate__(self) -> dict[str, Any]:
        return without_caches(self)

    @property
    def keys(self) -> list[Key]:
        """Keys of the tasks that a `Result` is computed from."""
        return list(dict.fromkeys((*self.rows_only, *((self.reduced,) if self.reduced else ()))))

    def with_graph(self, graph: Any, rename: Mapping[str, str]) -> ResultTasks:
        """Return the same tasks in another graph, which needs to hold `keys` and their inputs only.

        One that is no HighLevelGraph becomes a layer, with empty layers for the names of others.
        `rename` maps old to new names of layers.
        """
        blocks: dict[Key, Key] = {}

        def renamed(key: Key) -> Key:
            name, *place = blocks.get(key, key)
            return (rename.get(name, name), *place)

        if not isinstance(graph, HighLevelGraph):
            if self.keys[0] not in graph:  # the blocks of `holders`, in their order
                blocks.update(zip(self.keys, graph, strict=True))
            first, *others = sorted({renamed(key)[0] for key in self.keys})
            layers = {first: TaskLayer(graph)} | {name: TaskLayer({}) for name in others}
            graph = HighLevelGraph(layers, {name: {first} - {name} for name in layers})
        # each task of `rows_only` has the rows of as many tasks of `rows`; the last, of fewer
        rows_only, old = tuple(map(renamed, self.rows_only)), dict.fromkeys(self.rows)
        size = math.ceil(len(old) / max(1, len(rows_only)))
        new = {key: rows_only[k // size] for k, key in enumerate(old)}
        return replace(
            self,
            graph=graph,
            rows=tuple(new[key] for key in self.rows),
            rows_only=rows_only,
            reduced=None if self.reduced is None else renamed(self.reduced),
            token=tokenize(self.token, sorted(rename.items())) if rename else self.token,
        )

    @functools.cached_property
    def holders(self) -> da.Array:
        """The values of `keys` as a dask array of objects, one block for each."""
        name = f"{self.udf_name}-holders-{tokenize(self.token)}".lower()
        layer = LazyLayer(len(self.keys), _aliases, name, self.keys)
        layers = {**self.graph.layers, name: layer}
        depends = {**self.graph.dependencies, name: {key[0] for key in self.keys}}
        chunks = ((1,) * len(layer),)
        return da.Array(HighLevelGraph(layers, depends), name, chunks, meta=np.empty(0, object))

    def in_kind(self, array: da.Array) -> Any:
        """Return an array of the kind of the data."""
        return as_expression(array) if self.are_expressions else array

    def array(self, name: str) -> Any:
        """Return a result as a lazy array."""
        spec = self.specs[name]
        return self._array_of(name, spec.kind, spec, spec.fill)

    def mask(self, name: str) -> Any:
        """Return the valid mask of a result of `get_results` as a lazy array."""
        return self._array_of(name, "mask", replace(self.specs[name], dtype=FLAG), False)

    def visited(self) -> Any:
        """Return a lazy array of True over nav, whose blocks run a UDF without results."""
        spec = BufferSpec(kind="nav", extra_shape=(), dtype=FLAG)
        return self._array(("visited",), spec, False, visited_block, self.result_backend)

    def _array_of(self, name: str, stage: str, spec: BufferSpec, fill: Any) -> Any:
        """Return a result or its valid mask as a lazy array with the dtype of `spec`."""
        of_mask, backend = stage == "mask", self.result_backend
        if spec.kind == "nav":
            given = (self.number, name, of_mask, fill, backend)
            return self._array((stage, name), spec, fill, nav_block, *given)
        return self._array((stage, name), spec, fill, reduced_block, name, of_mask, spec, backend)

    def _array(
        self,
        named: tuple[str, ...],
        spec: BufferSpec,
        fill: Any,
        function: Callable[..., Any],
        *arguments: Any,
    ) -> Any:
        """Return a lazy array of blocks ``function(holder, ..., *arguments)``.

        Over nav, chunks without selected frames are blocks of `fill`. `named` has the stage and the
        name of the result.
        """
        dtype = spec.dtype
        make: Callable[..., dict[Key, Task]]
        given: tuple[Any, ...]
        if spec.kind == "nav":
            # with an empty ROI, get_results still runs
            end = self.reduced if self.finalized and not len(self.rows) else None
            filled = (fill, backend_holding(self.result_backend, dtype), end)
            make = _nav_blocks
            given = (self.rows, self.grid, self.flat, spec, function, arguments, filled)
            depends = layers_of_keys(self.rows, [end] if end else [])
            chunks = (*self.grid.nav_chunks, *((n,) for n in spec.extra_shape))
        else:
            assert self.reduced is not None
            shape = spec.extra_shape if spec.kind == "single" else spec.shape(0, self.sig)
            make, given = _only_block, (len(shape), function, TaskRef(self.reduced), *arguments)
            depends = {self.reduced[0]}
            chunks = tuple((n,) for n in shape)
        stage, *rest = named
        token = tokenize(self.token, stage, tuple(rest))  # names of results may differ in case only
        name = "-".join([self.udf_name, *rest, stage, token]).lower()
        needed = self.graph.cull_layers(depends)
        layers = {**needed.layers, name: LazyLayer(math.prod(map(len, chunks)), make, name, *given)}
        graph = HighLevelGraph(layers, {**needed.dependencies, name: depends})
        empty = backend_holding(self.result_backend, dtype).empty((0,) * len(chunks), dtype)
        return self.in_kind(da.Array(graph, name, chunks, meta=empty))

    def gather(self) -> tuple[Callable[..., Arrays], tuple[Any, ...]]:
        """Return a function that makes arrays and masks of the values of `keys`; its arguments."""
        place = None if self.reduced is None else self.keys.index(self.reduced)
        about = (self.grid, self.sig, self.specs)
        return _gather, (self.number, len(self.rows_only), place, about)


def _gather(
    values: list[Any], number: int, n_rows: int, reduced: int | None, about: tuple[Any, Any, Any]
) -> Arrays:
    """Return results and valid masks from the values of tasks; `reduced` is the place of one."""
    holders = [holder_of(value, number) for value in values]
    merged = None if reduced is None else holders[reduced]
    return assemble(*about, holders[:n_rows], merged)
