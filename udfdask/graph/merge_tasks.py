"""Adds the tasks after the chunks: merges of partial results, and the calls of get_results."""

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
from udfdask.plan.merge_tree import Merge
from udfdask.plan.recipe import Recipe, UDFRecipe

HEAVY_PAYLOAD = 64 << 10
"""Bytes of other UDFs' results in a payload from which merges get a partial of their own."""


def partials_of(run: RunLayers, number: int, payloads: list[Key]) -> list[Key]:
    """Return where the partials of one UDF are: in the payloads, or in tasks of their own."""
    if not _is_heavy(run, number):
        return payloads
    name = run.name("part", run.recipe.udfs[number])
    return run.map(name, payloads, lambda key, src, c: (_part, number, src))


def add_merges(
    run: RunLayers, number: int, udf: UDFRecipe, sources: list[Key]
) -> tuple[list[Key], Key | None]:
    """Add a task for each merge; return where the nav rows of each chunk are, and all the rest."""
    name = run.name("merge", udf)
    tasks: dict[Key, Task] = {}

    def add(step: Merge, partials: Sequence[Key]) -> Key:
        key = (name, step.level, step.place)
        tasks[key] = OutputTask(
            key, _merge, run.shared, number, step.checked, *map(TaskRef, partials)
        )
        return key

    rows, whole = udf.merge.apply(sources, add)
    if tasks:
        run.add(name, tasks, {s[0] for s in sources} | run.shared_layers)
    return rows, whole


def add_finalize(
    run: RunLayers, number: int, udf: UDFRecipe, rows: list[Key], whole: Key | None
) -> tuple[list[Key], Key]:
    """Add the calls of get_results; return where each chunk's results and the rest are."""
    name = run.name("finish", udf)
    rest = TaskRef(whole) if whole and udf.has_reduced else None
    # without any buffer, the rows of the aux data still come from the chunks
    by_rows = udf.has_nav or (rest is None and udf.carries_aux)
    depends = {k[0] for k in rows if by_rows} | ({whole[0]} if rest and whole else set())
    tasks: dict[Key, Task] = {}
    if udf.elementwise and rows:
        for c, source in enumerate(rows):
            key = (name, c)
            given = List(TaskRef(source)) if by_rows else List()
            tasks[key] = OutputTask(key, _finish, run.shared, number, c, given, rest)
        run.add(name, tasks, depends | run.shared_layers)
        return list(tasks), (name, 0)
    key = (name, 0)
    # neighbours share a source where a tree has merged them
    distinct = [k for k, _ in itertools.groupby(rows)] if by_rows else []
    given = List(*map(TaskRef, distinct))
    tasks[key] = OutputTask(key, _finish, run.shared, number, None, given, rest)
    run.add(name, tasks, depends | run.shared_layers)
    return [key] * len(rows), key


def _is_heavy(run: RunLayers, number: int) -> bool:
    """Return whether what other UDFs put into a payload is worth a task to leave it behind."""
    recipe = run.recipe
    group = next(group for group in run.groups if number in group.numbers)
    if len(group.numbers) == 1 or not recipe.grid.n_chunks:
        return False
    n_rows = int(recipe.grid.counts.max())
    return (
        sum(
            s.nbytes(n_rows, recipe.shape.sig)
            for k in group.numbers
            if k != number
            for s in recipe.udfs[k].allocated.values()
        )
        > HEAVY_PAYLOAD
    )


def _part(number: int, payload: Partials) -> Partial | None:
    """Return the partial of one UDF out of a payload."""
    return payload[number]


def _of(source: Any, number: int) -> Any:
    """Return the partial of a UDF: the thing itself, or out of a payload."""
    return source[number] if isinstance(source, tuple) else source


def _merge(recipe: Recipe, number: int, checked: bool, *sources: Any) -> Partial:
    """Carry out one merge of a tree."""
    return merge_partials(recipe, number, [_of(s, number) for s in sources], checked)


def _finish(
    recipe: Recipe, number: int, chunk: int | None, rows: list[Any], whole: Any
) -> Finalized:
    """Call get_results."""
    partials = [_of(source, number) for source in rows]
    return finalize(recipe, number, chunk, partials, None if whole is None else _of(whole, number))


def _sizeof(value: Partial | Finalized) -> int:
    """Return the size of a container in bytes: dask counts it as a few bytes otherwise."""
    return value.nbytes + 200


sizeof.register(Partial, _sizeof)
sizeof.register(Finalized, _sizeof)
