"""Adds the tasks behind the chunks: merges of partial results, and the calls of get_results."""

from __future__ import annotations

import itertools
from typing import Any

from dask.sizeof import sizeof

from udfdask.chunk.partial_result import Finished, Partial
from udfdask.chunk.run_chunk import Payload
from udfdask.graph.chunk_layers import Key
from udfdask.graph.dask_internals import List, OutputTask, Task, TaskRef
from udfdask.graph.layer_builder import RunLayers
from udfdask.merge.finalize import finish
from udfdask.merge.merge import empty, merge_all, merge_link, merge_tree
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
    """Add the merges; return where the nav rows of each chunk are, and all the rest."""
    if udf.merge == "none":
        return sources, None
    if not sources:
        key = (run.name("merge", udf), 0)
        run.add(key[0], {key: OutputTask(key, empty, run.shared, number)}, run.shared_layers)
        return [], key
    if udf.merge == "rows":
        links = run.map(
            run.name("merge", udf),
            sources,
            lambda key, src, c: (_link, run.shared, number, None, src),
        )
        return links, links[-1]
    if udf.merge == "chain":
        return _chain(run, number, udf, sources)
    return _tree(run, number, udf, sources)


def _chain(
    run: RunLayers, number: int, udf: UDFRecipe, sources: list[Key]
) -> tuple[list[Key], Key]:
    """Add merges one after another."""
    name = run.name("merge", udf)
    tasks: dict[Key, Task] = {}
    before: Any = None
    for c, source in enumerate(sources):
        key = (name, c)
        tasks[key] = OutputTask(key, _link, run.shared, number, before, TaskRef(source))
        before = TaskRef(key)
    run.add(name, tasks, {s[0] for s in sources} | run.shared_layers)
    return list(tasks), key


def _tree(run: RunLayers, number: int, udf: UDFRecipe, sources: list[Key]) -> tuple[list[Key], Key]:
    """Add a tree of merges; nav rows are final after the first level of one by `merge`."""
    name = run.name("merge", udf)
    fan_in = udf.split_every or len(sources)
    tasks: dict[Key, Task] = {}
    level, keys, rows = 0, sources, list(sources)
    while level == 0 or len(keys) > 1:
        nodes: list[Key] = []
        for start in range(0, len(keys), fan_in):
            key = (name, level, start // fan_in)
            # the ends of a scan may be empty, where an average of averages cannot be told
            end = start == 0 or start + fan_in >= len(keys)
            group = List(*map(TaskRef, keys[start : start + fan_in]))
            check = level == 0 and end and udf.split_every is not None
            tasks[key] = OutputTask(key, _node, run.shared, number, group, check)
            nodes.append(key)
        if level == 0:
            rows = [nodes[c // fan_in] for c in range(len(sources))]
        keys, level = nodes, level + 1
    run.add(name, tasks, {s[0] for s in sources} | run.shared_layers)
    if udf.merge == "all":
        rows = [keys[0]] * len(sources)
    return rows, keys[0]


def add_finish(
    run: RunLayers, number: int, udf: UDFRecipe, rows: list[Key], whole: Key | None
) -> tuple[list[Key], Key]:
    """Add the calls of get_results; return where each chunk's results and the rest are."""
    name = run.name("finish", udf)
    rest = TaskRef(whole) if whole and udf.has_whole else None
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


def _part(number: int, payload: Payload) -> Partial | None:
    """Return the partial of one UDF out of a payload."""
    return payload[number]


def _of(source: Any, number: int) -> Any:
    """Return the partial of a UDF: the thing itself, or out of a payload."""
    return source[number] if isinstance(source, tuple) else source


def _link(recipe: Recipe, number: int, before: Any, source: Any) -> Partial:
    """Merge one chunk behind those before it."""
    return merge_link(recipe, number, before, _of(source, number))


def _node(recipe: Recipe, number: int, sources: list[Any], check: bool) -> Partial:
    """Merge a group of neighbours."""
    partials = [_of(source, number) for source in sources]
    if recipe.udfs[number].merge == "all":
        return merge_all(recipe, number, partials, check)
    return merge_tree(recipe, number, partials)


def _finish(
    recipe: Recipe, number: int, chunk: int | None, rows: list[Any], whole: Any
) -> Finished:
    """Call get_results."""
    partials = [_of(source, number) for source in rows]
    return finish(recipe, number, chunk, partials, None if whole is None else _of(whole, number))


def _sizeof(value: Partial | Finished) -> int:
    """Return the size of a container in bytes: dask counts it as a few bytes otherwise."""
    return value.nbytes + 200


sizeof.register(Partial, _sizeof)
sizeof.register(Finished, _sizeof)
