"""The layers of a graph whose tasks read the data: one task per chunk, or per signal chunk.

A run with a halo has two tasks for each chunk, and one for each margin::

    load      block -> what is left of the chunk            (dask fuses it with the loading)
    margin    what is left of a chunk -> frames that one other chunk needs
    chunk     what is left of the chunk, margins of others -> partial results, one per UDF

Only margins travel between the workers of a cluster, in the dtype of the data. Chunks that have no
selected frame are loaded too, if others need frames of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
from dask import base

from udfdask.base.tracebacks import hides_own_lines
from udfdask.chunk.partial_result import join_groups, join_parts
from udfdask.geometry.halo import neighbors
from udfdask.graph.dask_internals.expressions import as_dask
from udfdask.graph.dask_internals.layers import (
    BlockLayer,
    LazyLayer,
    ListedTasks,
    blocks_in_memory,
)
from udfdask.graph.dask_internals.tasks import Key, List, OutputTask, Task, TaskRef
from udfdask.graph.run_layers import (
    RunLayers,
    TaskKeys,
    aux_at,
    block_keys,
    blocks_at,
    layers_of_keys,
    numbered_keys,
)
from udfdask.plan.groups import Group
from udfdask.plan.recipe import Recipe

if TYPE_CHECKING:
    from udfdask.chunk.halo_chunk import LoadedChunk, Margin

PLACED_LAYER = "on-workers-"
"""Part of the names of layers whose tasks can load data only on some workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkLayerInfo:
    """What the tasks of a layer process: progress and worker restrictions are derived from it."""

    array_name: str
    """Name of the dask array with the data."""
    recipe: Recipe
    """Recipe of the run."""
    keys: Sequence[Key]
    """Keys of the tasks, one for each chunk or for each signal chunk of it; chunk by chunk."""
    group: Group | None = None
    """The UDFs that the tasks run; None for all UDFs of a run that needs no device."""
    aux: tuple[Any, ...] = ()
    """Values of each of `recipe.aux_slots`."""
    blocks: Mapping[Key, Any] | None = None
    """The blocks of data in memory, which each task holds itself."""

    @property
    def chunks(self) -> dict[Key, int]:
        """The chunk that each task processes, or of which it processes a signal chunk."""
        n_parts = len(self.keys) // max(1, self.recipe.grid.n_chunks)
        return {key: number // n_parts for number, key in enumerate(self.keys)}

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers of the UDFs that the tasks run."""
        return tuple(range(len(self.recipe.udfs))) if self.group is None else self.group.numbers


class ChunkTasks(LazyLayer):
    """Chunk tasks that ``make(info, *arguments)`` lists one by one when they are needed."""

    def __init__(
        self, info: ChunkLayerInfo, make: Callable[..., dict[Key, Task]], *arguments: Any
    ) -> None:
        super().__init__(len(info.keys), make, info, *arguments)
        self.info = info


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
        arguments = (recipe_argument, self.BLOCK, self.INDEX, (), group)
        super().__init__(name, array, _run_block, *arguments)

    @property
    def task_keys(self) -> TaskKeys:
        """Keys of the tasks; those of a chunk are neighbors."""
        sig_blocks = tuple(map(len, self.recipe.sig_chunks))
        return block_keys(self.output, self.recipe.grid, sig_blocks)

    @property
    def info(self) -> ChunkLayerInfo:
        """What the tasks process."""
        known = {"array_name": self.array_name, "recipe": self.recipe, "group": self.group}
        return ChunkLayerInfo(keys=self.task_keys, **known)


def find_chunk_layers(collections: Any) -> dict[str, ChunkBlockwise | ChunkTasks]:
    """Return the layers of chunk tasks in the graphs of nested dask collections by name."""
    layers: dict[str, Any] = {}
    for collection in base.unpack_collections(collections)[0]:
        layers |= getattr(as_dask(collection).__dask_graph__(), "layers", {})
    return chunk_layers_among(layers)


def chunk_layers_among(layers: Mapping[str, Any]) -> dict[str, ChunkBlockwise | ChunkTasks]:
    """Return those of some layers that have chunk tasks."""
    kinds = (ChunkBlockwise, ChunkTasks)
    return {name: layer for name, layer in layers.items() if isinstance(layer, kinds)}


def add_chunks(run: RunLayers) -> list[TaskKeys]:
    """Add the chunk tasks; return for each UDF the keys with its partial result of each chunk."""
    sources = [numbered_keys(0)] * len(run.recipe.udfs)
    for group in run.groups:
        inputs = run.recipe_layers | _add_lazy_aux(run, group)
        # tasks that name no group run all UDFs: most runs have one group
        argument = run.group_argument(group, inputs)
        add = _add_with_halo if run.recipe.halos(group.numbers) else _add_group
        keys = add(run, group, argument, inputs)
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


def _joined_groups(name: str, by_group: list[TaskKeys]) -> dict[Key, Task]:
    """Return the tasks that join the partial results of all groups of UDFs, one per chunk."""
    return {
        (name, c): OutputTask((name, c), join_groups, List(*map(TaskRef, keys)))
        for c, keys in enumerate(zip(*by_group, strict=True))
    }


def _add_lazy_aux(run: RunLayers, group: Group) -> set[str]:
    """Add the layers of the lazy aux data of a group; return the names of those that tasks read."""
    names = set()
    for values, is_ours in zip(run.aux, run.own_slots(group), strict=True):
        if is_ours and isinstance(values, da.Array):
            run.layers.update(values.dask.layers)
            run.depends.update({n: set(d) for n, d in values.dask.dependencies.items()})
            names.add(values.name)
    return names


def _add_group(run: RunLayers, group: Group, argument: Group | None, inputs: set[str]) -> TaskKeys:
    """Add the chunk tasks of a group of UDFs; return one key per chunk."""
    recipe, name, ours = run.recipe, run.name("chunk", group=group), run.own_slots(group)
    # Tasks of two groups read each block: fused with it, each would load it again.
    fusible = len(run.groups) == 1
    n_chunks, joined = recipe.grid.n_chunks, recipe.n_blocks > 1 and not recipe.by_sig_chunk
    # Blockwise, so that dask fuses chunks with the loading of their block: otherwise a process pool
    # would send every block twice. Law 2 is kept by the tasks after the chunks (`OutputTask`).
    layer = ChunkBlockwise(name, recipe, run.array, run.recipe_argument, argument)
    keys = numbered_keys(n_chunks, name) if joined else layer.task_keys
    data = None if joined else blocks_in_memory(run.array)
    run.layers[name] = layer
    run.depends[name] = inputs | ({run.array.name} if data is None else set())
    if joined or data is not None or any(ours) or not fusible:
        # With `data`, each task holds its block. dask would fuse the two at the cost of an alias
        # and a small graph for each task, and its local schedulers take quadratic time to start if
        # they are not fused. A task with its block and aux data must not be fused with the aux
        # data, which any worker may compute.
        kind = Task if fusible and (data is None or not any(ours)) else OutputTask
        info = _info(run, keys, group=argument, blocks=data)
        run.layers[name] = ChunkTasks(info, _chunks, kind, joined, run.recipe_argument, ours)
    if not recipe.by_sig_chunk:
        return keys
    join = run.name("join", group=group)
    depends = {name, *run.recipe_layers}
    run.add(join, n_chunks, depends, _joins, run.recipe_argument, keys, recipe.n_blocks)
    return numbered_keys(n_chunks, join)


def _info(run: RunLayers, keys: Sequence[Key], **about: Any) -> ChunkLayerInfo:
    """Return what chunk tasks process; `about` has more fields of `ChunkLayerInfo`."""
    known = {"array_name": run.array.name, "recipe": run.recipe, "aux": run.aux}
    return ChunkLayerInfo(keys=keys, **known, **about)


def _chunks(
    info: ChunkLayerInfo, kind: type[Task], joined: bool, recipe: Any, ours: Sequence[bool]
) -> dict[Key, Task]:
    """Return chunk tasks of this kind; with `joined`, each takes all signal chunks."""
    grid, tasks = info.recipe.grid, dict[Key, Task]()
    for key, chunk in info.chunks.items():
        index = grid.index(chunk)
        place = index if joined else key[1:]
        source = (info.array_name, *place)
        block: Any = TaskRef(source) if info.blocks is None else info.blocks[source]
        if joined:
            block = blocks_at(info.recipe, *source)
        own = recipe, block, place, aux_at(grid, info.aux, index, ours), info.group
        tasks[key] = kind(key, _run_block, *own)
    return tasks


def _joins(name: str, recipe: Any, keys: Sequence[Key], n_blocks: int) -> dict[Key, Task]:
    """Return the tasks that join signal chunks."""
    tasks: dict[Key, Task] = {}
    for c, first in enumerate(range(0, len(keys), n_blocks)):
        parts = List(*map(TaskRef, keys[first : first + n_blocks]))
        tasks[name, c] = OutputTask((name, c), join_parts, recipe, c, parts)
    return tasks


def _add_with_halo(
    run: RunLayers, group: Group, argument: Group | None, inputs: set[str]
) -> TaskKeys:
    """Add the tasks of a group of UDFs, some of which have a halo; return one key per chunk."""
    recipe, grid, ours = run.recipe, run.recipe.grid, run.own_slots(group)
    halos = recipe.halos(group.numbers)
    needs = [neighbors(halos, chunk, grid) for chunk in range(grid.n_chunks)]
    needed_by: dict[tuple[int, ...], list[int]] = {grid.index(c): [] for c in range(grid.n_chunks)}
    load, margin, name = (run.name(n, group=group) for n in ("load", "margin", "chunk"))
    for chunk, others in enumerate(needs):
        for other in others:
            needed_by.setdefault(other, []).append(chunk)
    kind = Task if len(run.groups) == 1 else OutputTask
    loads: dict[Key, Task] = {}
    for index, chunks in needed_by.items():
        own = run.recipe_argument, index, tuple(chunks), blocks_at(recipe, run.array.name, *index)
        values = aux_at(grid, run.aux, index, ours) if grid.has_selected(index) else ()
        key = (load, *index)
        loads[key] = kind(key, _load, *own, values, argument)
    run.layers[load], run.depends[load] = ListedTasks(loads), inputs | {run.array.name}
    run.add(margin, sum(map(len, needs)), {load}, _margins, load, needs)
    keys = numbered_keys(grid.n_chunks, name)
    given = run.recipe_argument, load, margin, needs, ours
    run.layers[name] = ChunkTasks(_info(run, keys, group=argument), _chunks_with_halo, *given)
    run.depends[name] = inputs | {load, margin}
    return keys


def _chunks_with_halo(
    info: ChunkLayerInfo,
    recipe: Any,
    load: str,
    margin: str,
    needs: Sequence[Sequence[tuple[int, ...]]],
    ours: Sequence[bool],
) -> dict[Key, Task]:
    """Return the tasks that process the borders of chunks with frames of the chunks they need."""
    grid, tasks = info.recipe.grid, dict[Key, Task]()
    for (key, chunk), others in zip(info.chunks.items(), needs, strict=True):
        index = grid.index(chunk)
        places = (index, *others) if any(ours) and others else ()
        aux = List(*(aux_at(grid, info.aux, place, ours) for place in places)) if places else ()
        margins = List(*(TaskRef((margin, chunk, *other)) for other in others))
        own = recipe, chunk, TaskRef((load, *index)), tuple(others), margins, aux, info.group
        tasks[key] = OutputTask(key, _finish, *own)
    return tasks


def _margins(name: str, load: str, needs: Sequence[Iterable[tuple[int, ...]]]) -> dict[Key, Task]:
    """Return the tasks that pick the frames of a chunk that another chunk needs."""
    places = ((chunk, *other) for chunk, others in enumerate(needs) for other in others)
    return {
        (name, *place): OutputTask((name, *place), _margin, place[0], TaskRef((load, *place[1:])))
        for place in places
    }


@hides_own_lines
def _run_block(
    recipe: Recipe,
    blocks: Any,
    index: tuple[int, ...],
    aux: Sequence[Any] = (),
    group: Group | None = None,
) -> Any:
    """Run a chunk of one block or of a list of its signal chunks, or run one signal chunk.

    `index` is the place in dask's grid, from which the chunk follows: tasks do not grow with the
    scan.
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
    return run_chunk(recipe, chunk, blocks, aux, group, part)


@hides_own_lines
def _load(recipe: Recipe, *arguments: Any) -> LoadedChunk:
    """Process the positions of a chunk whose windows lie in it, and cut margins."""
    from udfdask.chunk.halo_chunk import load_chunk  # few runs need it

    return load_chunk(recipe, *arguments)


def _margin(chunk: int, loaded: LoadedChunk) -> Margin:
    """Return the frames that one other chunk needs."""
    return loaded.margins[chunk]


@hides_own_lines
def _finish(
    recipe: Recipe,
    chunk: int,
    loaded: LoadedChunk,
    others: tuple[tuple[int, ...], ...],
    margins: Sequence[Margin],
    aux: Sequence[Any] = (),
    group: Group | None = None,
) -> Any:
    """Process the positions at the borders of a chunk."""
    from udfdask.chunk.halo_chunk import finish_chunk

    recipe = recipe.now
    by_index = dict(zip((recipe.grid.index(chunk), *others), aux, strict=True)) if aux else None
    found = dict(zip(others, margins, strict=True))
    return finish_chunk(recipe, chunk, loaded, found, by_index, group)
