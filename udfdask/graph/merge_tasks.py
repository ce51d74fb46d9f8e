"""Add the tasks after the chunks: merges of partial results, and the calls of `get_results`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from dask.sizeof import sizeof

from udfdask.chunk.partial_result import Finalized, Partial
from udfdask.chunk.run_chunk import Partials
from udfdask.graph.chunk_layers import Key
from udfdask.graph.dask_internals import List, OutputTask, Task, TaskRef
from udfdask.graph.layer_builder import RunLayers
from udfdask.merge.finalize import finalize
from udfdask.merge.merge import merge_partials
from udfdask.merge.result_blocks import holder_of
from udfdask.plan.merge_tree import Merge
from udfdask.plan.recipe import Recipe

MAX_OTHER_BYTES = 64 << 10
"""If a chunk task returns more bytes for other UDFs than this, merges read from a task between."""


def add_parts(run: RunLayers, number: int, chunks: list[Key]) -> list[Key]:
    """Return the tasks that merges of one UDF read: chunk tasks, or new ones that pick its part."""
    if _bytes_of_others(run, number) <= MAX_OTHER_BYTES:
        return chunks
    name = run.name("part", number)
    tasks: dict[Key, Task] = {
        (name, c): OutputTask((name, c), _pick, number, TaskRef(source))
        for c, source in enumerate(chunks)
    }
    run.add(name, tasks, {chunks[0][0], *run.recipe_layers})
    return list(tasks)


def add_merges(run: RunLayers, number: int, sources: list[Key]) -> tuple[list[Key], Key | None]:
    """Add the merges of a UDF; return the keys with the nav rows of each chunk, and the last."""
    name = run.name("merge", number)
    tasks: dict[Key, Task] = {}

    def add(step: Merge, partials: Sequence[Key]) -> Key:
        key = (name, step.level, step.place)
        tasks[key] = OutputTask(
            key, _merge, run.recipe_argument, number, step.checked, *map(TaskRef, partials)
        )
        return key

    rows, reduced = run.recipe.udfs[number].merge.apply(sources, add)
    if tasks:
        run.add(name, tasks, {s[0] for s in sources} | run.recipe_layers)
    return rows, reduced


def add_finalize(
    run: RunLayers, number: int, rows: list[Key], reduced: Key | None
) -> tuple[list[Key], Key]:
    """Add the calls of `get_results`; return the keys with each chunk's results, and the last."""
    udf, name = run.recipe.udfs[number], run.name("finish", number)
    merged = TaskRef(reduced) if reduced and udf.has_reduced else None
    # a UDF without any buffer gets the rows of its aux data from the chunks
    needs_rows = udf.has_nav or (merged is None and udf.carries_aux)
    tasks: dict[Key, Task] = {}

    def add(place: int, chunk: int | None, sources: Sequence[Key]) -> Key:
        key = (name, place)
        partials = List(*map(TaskRef, sources if needs_rows else ()))
        tasks[key] = OutputTask(
            key, _finalize, run.recipe_argument, number, chunk, partials, merged
        )
        return key

    if udf.elementwise and rows:
        keys = [add(c, c, [source]) for c, source in enumerate(rows)]
    else:
        # chunks that a tree has merged share a source
        keys = [add(0, None, [source for source, _ in itertools.groupby(rows)])] * len(rows)
    depends = {source[0] for source in rows if needs_rows} | run.recipe_layers
    run.add(name, tasks, depends | ({reduced[0]} if merged and reduced else set()))
    return keys, (name, 0)


def _bytes_of_others(run: RunLayers, number: int) -> int:
    """Return the size of the buffers of other UDFs in the result of the largest chunk task."""
    recipe = run.recipe
    n_rows = int(recipe.grid.counts.max(initial=0))
    return sum(
        spec.nbytes(n_rows, recipe.shape.sig)
        for group in run.groups
        if number in group.numbers and recipe.grid.n_chunks
        for other in group.numbers
        if other != number
        for spec in recipe.udfs[other].allocated.values()
    )


def _pick(number: int, partials: Partials) -> Partial | None:
    """Return the partial result of one UDF."""
    return partials[number]


def _merge(recipe: Recipe, number: int, checked: bool, *sources: Any) -> Partial:
    """Carry out one merge of a tree."""
    partials: list[Any] = [holder_of(source, number) for source in sources]
    return merge_partials(recipe.now, number, partials, checked)


def _finalize(
    recipe: Recipe, number: int, chunk: int | None, rows: list[Any], reduced: Any
) -> Finalized:
    """Call `get_results`."""
    partials: list[Any] = [holder_of(source, number) for source in rows]
    merged: Any = None if reduced is None else holder_of(reduced, number)
    return finalize(recipe.now, number, chunk, partials, merged)


def _sizeof(value: Partial | Finalized) -> int:
    """Return the size in bytes; dask would count a few bytes for a class it does not know."""
    return value.nbytes + 200


sizeof.register(Partial, _sizeof)
sizeof.register(Finalized, _sizeof)
