"""Add the tasks of runs with a halo: two for each chunk, and one for each margin.

    load      block -> what is left of the chunk            (dask fuses it with the loading)
    margin    what is left of a chunk -> frames that one other chunk needs
    chunk     what is left of the chunk, margins of others -> partial results, one per UDF

Only margins travel between the workers of a cluster, in the dtype of the data. Chunks that have no
selected frame are loaded too, if others need frames of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from udfdask.geometry.halo import neighbors
from udfdask.graph.chunk_layers import ChunkLayerInfo, ChunkTasks, Recording, optional_arguments
from udfdask.graph.dask_internals.layers import ListedTasks
from udfdask.graph.dask_internals.tasks import Key, List, OutputTask, Task, TaskRef
from udfdask.graph.run_layers import RunLayers, numbered_keys
from udfdask.plan.recipe import Group, Recipe
from udfdask.tracebacks import hides_own_lines

if TYPE_CHECKING:
    from udfdask.chunk.neighborhoods.run_with_halo import LoadedChunk, Margin

Index = tuple[int, ...]


def add_chunks_with_halo(run: RunLayers, group: Group, inputs: set[str]) -> Sequence[Key]:
    """Add the tasks of a group of UDFs, some of which have a halo; return one key per chunk.

    `inputs` are the layers of the recipe and of lazy aux data, which have been added.
    """
    recipe, grid = run.recipe, run.recipe.grid
    halos = recipe.halos(group.numbers)
    chunks = range(grid.n_chunks)
    needs = [neighbors(halos, chunk, grid) for chunk in chunks]
    load, margin, name = (run.name(n, group=group) for n in ("load", "margin", "chunk"))
    argument = run.group_argument(group, inputs)
    run.layers[load] = ListedTasks(_loads(run, load, needs, argument, group))
    run.depends[load] = inputs | {run.array.name}
    n_margins = sum(map(len, needs))
    if n_margins:
        run.add(margin, n_margins, {load}, _margins, load, needs)
    tasks = _finishes(run, name, load, margin, needs, argument, group)
    info = ChunkLayerInfo(
        array_name=run.array.name,
        recipe=recipe,
        chunks={(name, chunk): chunk for chunk in chunks},
        group=argument,
        aux=run.aux,
    )
    run.layers[name] = ChunkTasks(tasks, info)
    run.depends[name] = inputs | {load} | ({margin} if n_margins else set())
    return numbered_keys(grid.n_chunks, name)


def _loads(
    run: RunLayers,
    name: str,
    needs: Sequence[Sequence[Index]],
    argument: Group | None,
    group: Group,
) -> dict[Key, Task]:
    """Return the tasks that load chunks with a selected frame, or with frames that others need."""
    grid = run.recipe.grid
    needed_by: dict[Index, list[int]] = {grid.index(c): [] for c in range(grid.n_chunks)}
    for chunk, others in enumerate(needs):
        for other in others:
            needed_by.setdefault(other, []).append(chunk)
    kind = Task if len(run.groups) == 1 else OutputTask
    ours = run.own_slots(group)
    tasks: dict[Key, Task] = {}
    for index, chunks in needed_by.items():
        key = (name, *index)
        aux = run.aux_at(index, ours) if grid.has_selected(index) else None
        own = run.recipe_argument, index, tuple(chunks), run.blocks_at(index)
        tasks[key] = kind(key, _load, *own, *optional_arguments(aux, argument))
    return tasks


def _margins(name: str, load: str, needs: Sequence[Sequence[Index]]) -> dict[Key, Task]:
    """Return the tasks that pick the frames of a chunk that one other chunk needs."""
    return {
        (name, chunk, *other): OutputTask(
            (name, chunk, *other), _margin, chunk, TaskRef((load, *other))
        )
        for chunk, others in enumerate(needs)
        for other in others
    }


def _finishes(
    run: RunLayers,
    name: str,
    load: str,
    margin: str,
    needs: Sequence[Sequence[Index]],
    argument: Group | None,
    group: Group,
) -> dict[Key, Task]:
    """Return the tasks that process the positions at the borders of chunks."""
    grid = run.recipe.grid
    ours = run.own_slots(group)
    tasks: dict[Key, Task] = {}
    for chunk, others in enumerate(needs):
        key, index = (name, chunk), grid.index(chunk)
        places = (index, *others) if any(ours) and others else ()
        aux = List(*(run.aux_at(place, ours) for place in places)) if places else None
        tasks[key] = OutputTask(
            key,
            _finish,
            run.recipe_argument,
            chunk,
            TaskRef((load, *index)),
            tuple(others),
            List(*(TaskRef((margin, chunk, *other)) for other in others)),
            *optional_arguments(aux, argument),
        )
    return tasks


@hides_own_lines
def _load(
    recipe: Recipe,
    index: Index,
    needed_by: tuple[int, ...],
    blocks: Sequence[Any],
    aux: Sequence[Any] = (),
    group: Group | None = None,
) -> LoadedChunk:
    """Process the positions of a chunk whose windows lie in it, and cut margins."""
    from udfdask.chunk.neighborhoods.run_with_halo import load_chunk  # few runs need it

    return load_chunk(recipe, index, needed_by, blocks, aux, group)


def _margin(chunk: int, loaded: LoadedChunk) -> Margin:
    """Return the frames that one other chunk needs."""
    return loaded.margins[chunk]


@hides_own_lines
def _finish(
    recipe: Recipe,
    chunk: int,
    loaded: LoadedChunk,
    others: tuple[Index, ...],
    margins: Sequence[Margin],
    aux: Sequence[Any] = (),
    group: Group | None = None,
    records: Recording | None = None,
) -> Any:
    """Process the positions at the borders of a chunk."""
    from udfdask.chunk.neighborhoods.run_with_halo import finish_chunk

    recipe = recipe.now
    index = recipe.grid.index(chunk)
    by_index = [
        None if values[0] is None else dict(zip((index, *others), values, strict=True))
        for values in zip(*aux, strict=True)
    ]

    def run(group: Group | None) -> Any:
        found = dict(zip(others, margins, strict=True))
        return finish_chunk(recipe, chunk, loaded, found, by_index, group)

    return run(group) if records is None else records.run(recipe, chunk, group, run)
