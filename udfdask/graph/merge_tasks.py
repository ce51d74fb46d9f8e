"""Add the tasks after the chunks: merges of partial results, and the calls of `get_results`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from udfdask.chunk.partial_result import Finalized, Partial, Partials
from udfdask.graph.dask_internals.tasks import List, OutputTask, Task, TaskRef
from udfdask.graph.layer_builder import RunLayers
from udfdask.graph.task_keys import Key, MergedRowKeys, NumberedKeys, SameKeys, layers_of_keys
from udfdask.merge.finalize import finalize
from udfdask.merge.merge import merge_partials
from udfdask.merge.result_blocks import holder_of
from udfdask.plan.merge_tree import Merge, MergeTree
from udfdask.plan.recipe import Recipe
from udfdask.tracebacks import hides_own_lines

MAX_OTHER_BYTES = 64 << 10
"""If a chunk task returns more bytes for other UDFs than this, merges read from a task between."""

MAX_WAITING_BYTES = 1 << 30
"""The same for all chunk tasks together, if their results wait in memory for `get_results`."""


def add_parts(run: RunLayers, number: int, chunks: Sequence[Key]) -> Sequence[Key]:
    """Return the tasks that merges of one UDF read: chunk tasks, or new ones that pick its part."""
    udf = run.recipe.udfs[number]
    waits = udf.merge.mode == "none" and udf.has_get_results and not udf.elementwise
    limit = min(MAX_OTHER_BYTES, MAX_WAITING_BYTES // max(1, len(chunks)))
    if _bytes_of_others(run, number) <= (limit if waits else MAX_OTHER_BYTES):
        return chunks
    name = run.name("part", number)
    depends = layers_of_keys(chunks) | run.recipe_layers
    run.add(name, len(chunks), depends, _parts, number, chunks)
    return NumberedKeys((name,), len(chunks))


def _parts(name: str, number: int, chunks: Sequence[Key]) -> dict[Key, Task]:
    """Return the tasks that pick the part of one UDF."""
    return {
        (name, c): OutputTask((name, c), _pick, number, TaskRef(source))
        for c, source in enumerate(chunks)
    }


def add_merges(
    run: RunLayers, number: int, sources: Sequence[Key]
) -> tuple[Sequence[Key], Key | None]:
    """Add the merges of a UDF; return the keys with the nav rows of each chunk, and the last."""
    tree, name = run.recipe.udfs[number].merge, run.name("merge", number)
    if tree.last is None:
        return sources, None
    depends = layers_of_keys(sources) | run.recipe_layers
    run.add(name, sum(tree.sizes), depends, _merges, run.recipe_argument, number, tree, sources)
    return MergedRowKeys(name, tree), (name, *tree.last)


def _merges(
    name: str, recipe: Any, number: int, tree: MergeTree, sources: Sequence[Key]
) -> dict[Key, Task]:
    """Return the tasks of all merges of a UDF."""
    tasks: dict[Key, Task] = {}

    def add(step: Merge, partials: Sequence[Key]) -> Key:
        key = (name, step.level, step.place)
        tasks[key] = OutputTask(key, _merge, recipe, number, step.checked, *map(TaskRef, partials))
        return key

    tree.apply(list(sources), add)
    return tasks


def add_finalize(
    run: RunLayers, number: int, rows: Sequence[Key], reduced: Key | None
) -> tuple[Sequence[Key], Key]:
    """Add the calls of `get_results`; return the keys with each chunk's results, and the last."""
    udf, name = run.recipe.udfs[number], run.name("finish", number)
    merged = reduced if udf.has_reduced else None
    # a UDF without any buffer gets the rows of its aux data from the chunks
    needs_rows = udf.has_nav or (merged is None and udf.carries_aux)
    by_chunk = udf.elementwise and len(rows) > 0
    depends = layers_of_keys(rows if needs_rows else ()) | run.recipe_layers
    if merged is not None:
        depends.add(merged[0])
    run.add(
        name,
        len(rows) if by_chunk else 1,
        depends,
        _finishes,
        run.recipe_argument,
        number,
        rows if by_chunk or needs_rows else (),
        merged,
        needs_rows,
        by_chunk,
    )
    first = (name, 0)
    return NumberedKeys((name,), len(rows)) if by_chunk else SameKeys(first, len(rows)), first


def _finishes(
    name: str,
    recipe: Any,
    number: int,
    rows: Sequence[Key],
    merged: Key | None,
    needs_rows: bool,
    by_chunk: bool,
) -> dict[Key, Task]:
    """Return the tasks that call `get_results`: for each chunk, or once."""
    reduced = None if merged is None else TaskRef(merged)

    def task(place: int, chunk: int | None, sources: Sequence[Key]) -> OutputTask:
        partials = List(*map(TaskRef, sources if needs_rows else ()))
        return OutputTask((name, place), _finalize, recipe, number, chunk, partials, reduced)

    if by_chunk:
        return {(name, c): task(c, c, [source]) for c, source in enumerate(rows)}
    # chunks that a tree has merged share a source
    return {(name, 0): task(0, None, [source for source, _ in itertools.groupby(rows)])}


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


@hides_own_lines
def _merge(recipe: Recipe, number: int, checked: bool, *sources: Any) -> Partial:
    """Carry out one merge of a tree."""
    partials: list[Any] = [holder_of(source, number) for source in sources]
    return merge_partials(recipe.now, number, partials, checked)


@hides_own_lines
def _finalize(
    recipe: Recipe, number: int, chunk: int | None, rows: list[Any], reduced: Any
) -> Finalized:
    """Call `get_results`."""
    partials: list[Any] = [holder_of(source, number) for source in rows]
    merged: Any = None if reduced is None else holder_of(reduced, number)
    return finalize(recipe.now, number, chunk, partials, merged)
