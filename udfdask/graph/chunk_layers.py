"""The layers of a graph whose tasks read the data: one task per chunk, or per signal chunk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
    blocks: Any,
    index: tuple[int, ...],
    aux: Sequence[Any] = (),
    group: Group | None = None,
    records: Recording | None = None,
) -> Any:
    """Run a chunk of one block or of a list of its signal chunks, or run one signal chunk.

    `index` is the place in dask's grid of blocks. The chunk and its bounds follow from the index
    and the runs of equal chunks in `recipe.grid`: neither tasks nor recipe grow with the scan.
    """
    from udfdask.chunk.run_chunk import run_chunk  # clients of clusters run no chunk

    recipe = recipe.now
    n_nav = len(recipe.grid.shape)
    chunk = recipe.grid.chunk_at(index[:n_nav])
    part = None
    if recipe.by_sig_chunk:
        counts = [len(sizes) for sizes in recipe.sig_chunks]
        part = int(np.ravel_multi_index(index[n_nav:], counts))
    if recipe.n_blocks == 1 or recipe.by_sig_chunk:
        blocks = (blocks,)

    def run(group: Group | None) -> Partials:
        return run_chunk(recipe, chunk, blocks, aux, group, part)

    return run(group) if records is None else records.run(recipe, chunk, group, run)


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
    argument = run.group_argument(group, inputs)
    n_chunks, joined = recipe.grid.n_chunks, recipe.n_blocks > 1 and not recipe.by_sig_chunk
    # Blockwise, so that dask fuses chunks with the loading of their block: otherwise a process pool
    # would send every block twice. Law 2 is kept by the tasks after the chunks (`OutputTask`).
    layer = ChunkBlockwise(name, recipe, run.array, run.recipe_argument, argument)
    keys = numbered_keys(n_chunks, name) if joined else layer.task_keys
    data = None if joined else blocks_in_memory(run.array)
    if joined or data is not None or any(ours) or not fusible:
        # With `data`, each task holds its block. dask would fuse the two at the cost of an alias
        # and a small graph for each task, and its local schedulers take quadratic time to start if
        # they are not fused. A task with its block and aux data must not be fused with the aux
        # data, which any worker may compute.
        kind = Task if fusible and (data is None or not any(ours)) else OutputTask
        tasks: dict[Key, Task] = {}
        per_chunk = recipe.n_blocks if recipe.by_sig_chunk else 1
        info = ChunkLayerInfo(
            array_name=run.array.name,
            recipe=recipe,
            chunks={key: number // per_chunk for number, key in enumerate(keys)},
            group=argument,
            aux=run.aux,
            blocks=data,
        )
        aux = [run.aux_at(recipe.grid.index(chunk), ours) for chunk in range(n_chunks)]
        for key, chunk in info.chunks.items():
            index = recipe.grid.index(chunk) if joined else key[1:]
            source = (run.array.name, *index)
            block: Any = run.blocks_at(index) if joined else TaskRef(source)
            if data is not None:
                block = data[source]
            rest = optional_arguments(aux[chunk], argument)
            tasks[key] = kind(key, _run_block, run.recipe_argument, block, index, *rest)
        run.layers[name] = ChunkTasks(tasks, info)
    else:
        run.layers[name] = layer
    run.depends[name] = inputs | ({run.array.name} if data is None else set())
    return _add_joins(run, group, keys) if recipe.by_sig_chunk else keys


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
