"""The layers of a graph whose tasks read the data: one task per chunk, or per signal chunk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import dask.array as da
import numpy as np
from dask import base

from udfdask.chunk.partial_result import Partials
from udfdask.graph.dask_internals.arrays import GraphArray, blocks_in_memory
from udfdask.graph.dask_internals.layers import BlockLayer, ListedTasks
from udfdask.graph.dask_internals.tasks import Key, List, OutputTask, Task, TaskRef
from udfdask.graph.run_layers import RunLayers, TaskKeys, block_keys, layers_of_keys, numbered_keys
from udfdask.plan.recipe import Group, Recipe
from udfdask.tracebacks import hides_own_lines

PLACED_LAYER = "on-workers-"
"""Part of the names of layers whose tasks can load data only on some workers."""


class Recording(Protocol):
    """Runs a chunk task that stores its partial results; `records.graphs` has it."""

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
        self, name: str, recipe: Recipe, array: da.Array, recipe_argument: Any, group: Group | None
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
    def task_keys(self) -> TaskKeys:
        """Keys of the tasks; those of a chunk are neighbors."""
        sig_blocks = tuple(map(len, self.recipe.sig_chunks))
        return block_keys(self.output, self.recipe.grid, sig_blocks)

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


def layers_of_collections(collections: Any) -> dict[str, Any]:
    """Return the layers of the graphs of nested dask collections by name."""
    layers: dict[str, Any] = {}
    for collection in base.unpack_collections(collections)[0]:
        layers |= getattr(collection.__dask_graph__(), "layers", {})
    return layers


def needs_device(collections: Any) -> bool:
    """Return whether a UDF of nested dask collections needs a device."""
    for layer in layers_of_collections(collections).values():
        group = layer.group if isinstance(layer, (ChunkBlockwise, ChunkTasks)) else None
        # the keys of all chunks are listed only if it needs a device
        if group is not None and group.needs_cuda and layer.info.chunks:
            return True
    return False


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
    from udfdask.chunk.run_chunk import run_chunk  # clients of clusters run no chunk

    recipe = recipe.now
    n_nav = len(recipe.grid.shape)
    chunk = recipe.grid.chunk_at(index[:n_nav])
    part = None
    if recipe.by_sig_chunk:
        counts = [len(sizes) for sizes in recipe.sig_chunks]
        part = int(np.ravel_multi_index(index[n_nav:], counts))

    def run(group: Group | None) -> Partials:
        return run_chunk(recipe, chunk, (block,), aux, group, part)

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


def add_chunks(run: RunLayers) -> list[Sequence[Key]]:
    """Add the chunk tasks; return for each UDF the keys with its partial result of each chunk."""
    sources: list[Sequence[Key]] = [()] * len(run.recipe.udfs)
    for group in run.groups:
        keys = _add_group(run, group)
        for number in group.numbers:
            sources[number] = keys
    return sources


def add_chunks_of_all_groups(run: RunLayers) -> Sequence[Key]:
    """Add the chunk tasks; return one key per chunk, with the partial results of all UDFs."""
    sources = add_chunks(run)
    by_group = [sources[group.numbers[0]] for group in run.groups]
    if len(by_group) == 1:
        return by_group[0]
    name = run.name("payload")
    n_chunks = run.recipe.grid.n_chunks
    run.add(name, n_chunks, layers_of_keys(*by_group), _joined_groups, by_group)
    return numbered_keys(n_chunks, name)


def _joined_groups(name: str, by_group: list[Sequence[Key]]) -> dict[Key, Task]:
    """Return the tasks that join the partial results of all groups of UDFs, one per chunk."""
    from udfdask.chunk.partial_result import join_groups  # few runs need it

    return {
        (name, c): OutputTask((name, c), join_groups, List(*map(TaskRef, keys)))
        for c, keys in enumerate(zip(*by_group, strict=True))
    }


def _add_group(run: RunLayers, group: Group) -> Sequence[Key]:
    """Add the chunk tasks of a group of UDFs; return one key per chunk."""
    recipe = run.recipe
    # Tasks of two groups read each block: fused with it, each would load it again.
    fusible = len(run.groups) == 1
    name = run.name("chunk", group=group)
    ours = run.own_slots(group)
    inputs = run.recipe_layers | _add_lazy_aux(run, ours)
    if recipe.halos(group.numbers):
        from udfdask.graph.halo_tasks import add_chunks_with_halo  # few runs need it

        return add_chunks_with_halo(run, group, inputs)
    aux = [_aux_of_chunk(run, c, ours) for c in range(recipe.grid.n_chunks)] if any(ours) else None
    argument = run.group_argument(group, inputs)
    if recipe.n_blocks > 1 and not recipe.by_sig_chunk:
        tasks = _tasks_of_blocks(run, name, aux, argument, fusible=fusible)
        run.layers[name] = tasks
        run.depends[name] = {run.array.name, *inputs}
        return numbered_keys(recipe.grid.n_chunks, name)
    # Blockwise, so that dask fuses chunks with the loading of their block: otherwise a process pool
    # would send every block twice. Law 2 is kept by the tasks after the chunks (`OutputTask`).
    layer = ChunkBlockwise(name, recipe, run.array, run.recipe_argument, argument)
    data = blocks_in_memory(run.array)
    if data is None and aux is None and fusible:
        run.layers[name] = layer
    else:
        tasks = layer.as_tasks(run.recipe_argument, data, aux, values=run.aux, fusible=fusible)
        run.layers[name] = tasks
    run.depends[name] = inputs | ({run.array.name} if data is None else set())
    return _add_joins(run, group, layer.task_keys) if recipe.by_sig_chunk else layer.task_keys


def _tasks_of_blocks(
    run: RunLayers, name: str, aux: list[Any] | None, group: Group | None, *, fusible: bool
) -> ChunkTasks:
    """Return one task per chunk, each of which gets all signal chunks of its chunk."""
    kind = Task if fusible else OutputTask
    chunks = range(run.recipe.grid.n_chunks)
    tasks: dict[Key, Task] = {}
    for c in chunks:
        blocks = run.blocks_at(run.recipe.grid.index(c))
        rest = optional_arguments(None if aux is None else aux[c], group)
        tasks[name, c] = kind((name, c), run_blocks, run.recipe_argument, c, blocks, *rest)
    info = ChunkLayerInfo(
        array_name=run.array.name,
        recipe=run.recipe,
        chunks=dict(zip(tasks, chunks, strict=True)),
        group=group,
        aux=run.aux,
    )
    return ChunkTasks(tasks, info)


def _aux_of_chunk(run: RunLayers, chunk: int, ours: Sequence[bool]) -> Any:
    """Return the aux data of a chunk, an argument of its task; None for UDFs of another group.

    They are arrays, or references to the blocks of lazy ones: no task needs another chunk's rows.
    """
    index = run.recipe.grid.index(chunk)
    each = zip(run.aux, ours, strict=True)
    return List(*(run.aux_at(index, values) if is_ours else None for values, is_ours in each))


def _add_lazy_aux(run: RunLayers, ours: Sequence[bool]) -> set[str]:
    """Add the layers of the lazy aux data of a group; return the names of those that tasks read."""
    names = set()
    for values, is_ours in zip(run.aux, ours, strict=True):
        if is_ours and isinstance(values, GraphArray):
            run.layers.update(values.dask.layers)
            run.depends.update({n: set(d) for n, d in values.dask.dependencies.items()})
            names.add(values.name)
    return names


def _add_joins(run: RunLayers, group: Group, keys: Sequence[Key]) -> Sequence[Key]:
    """Add one task per chunk that joins its signal chunks; return their keys."""
    recipe, name = run.recipe, run.name("join", group=group)
    depends = layers_of_keys(keys) | run.recipe_layers
    n_chunks = recipe.grid.n_chunks
    run.add(name, n_chunks, depends, _joins, run.recipe_argument, keys, recipe.n_blocks)
    return numbered_keys(n_chunks, name)


def _joins(name: str, recipe: Any, keys: Sequence[Key], n_blocks: int) -> dict[Key, Task]:
    """Return the tasks that join signal chunks."""
    from udfdask.chunk.partial_result import join_parts  # few runs need it

    tasks: dict[Key, Task] = {}
    for c, first in enumerate(range(0, len(keys), n_blocks)):
        parts = List(*map(TaskRef, keys[first : first + n_blocks]))
        tasks[name, c] = OutputTask((name, c), join_parts, recipe, c, parts)
    return tasks
