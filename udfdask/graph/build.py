"""Build the dask graph of a plan: chunks, merges, `get_results`.

Layers of a run, for the UDF with number k::

    chunk   block -> partial results, one per UDF      (dask fuses it with the loading of the block;
                                                       two layers, not fused, if only some UDFs
                                                       need a CUDA device)
    join    partial results of signal chunks -> those of the chunk
    part    partial results -> partial result k        (if those of other UDFs are large)
    merge   partial results k -> one                   (tree, chain, rows or merge_all)
    rows    any of these -> nav buffers only           (if the task has much else)
    gather  nav buffers of many chunks -> of all       (if one task would read those of very many)
    finish  merged partial result k -> results         (if the UDF has get_results)

A `Result` is computed from the last of these tasks; `result_tasks` adds the blocks of dask arrays
when a user asks for an array.

Law 2 holds for the results of one run, and for runs that are computed together. If `dask.optimize`
comes first for two runs over the same data, one of them may load the data again, because dask has
fused it with the loading separately.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dask.array as da
from dask.highlevelgraph import HighLevelGraph

from udfdask.base.tracebacks import hides_own_lines
from udfdask.chunk.finalize import finalize
from udfdask.chunk.merge import merge_partials
from udfdask.chunk.partial_result import Finalized, Partial
from udfdask.chunk.result_blocks import holder_of
from udfdask.graph.chunk_layers import (
    ChunkBlockwise,
    ChunkTasks,
    add_chunks,
    add_chunks_of_all_groups,
    chunk_layers_among,
)
from udfdask.graph.dask_internals.expressions import count_of_expressions
from udfdask.graph.dask_internals.layers import ListedTasks, fused, is_never_fused, optimized
from udfdask.graph.dask_internals.tasks import Key, List, OutputTask, Task, TaskRef
from udfdask.graph.inputs import shared_recipe
from udfdask.graph.result_tasks import ResultTasks
from udfdask.graph.rows import add_parts, add_rows_only, gathered, held_by
from udfdask.graph.run_layers import (
    RunLayers,
    TaskKeys,
    layers_of_keys,
    merged_row_keys,
    numbered_keys,
)
from udfdask.plan.merge_tree import Merge, MergeTree
from udfdask.plan.plan import Plan
from udfdask.plan.recipe import Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """Optimized tasks and the keys of their results."""

    dsk: dict[Key, Any]
    """Tasks by key."""
    keys: list[Key]
    """Keys of the results."""
    layers: dict[str, ChunkBlockwise | ChunkTasks]
    """The layers of chunk tasks by name."""


def build_graph(plan: Plan, array: da.Array) -> tuple[ResultTasks, ...]:
    """Return the tasks that hold the results of every UDF of a plan."""
    run = RunLayers(plan, array)
    sources = add_chunks(run)
    return tuple(_results_of(run, number, keys) for number, keys in enumerate(sources))


def count_tasks(every: Sequence[ResultTasks]) -> int:
    """Return how many tasks dask makes for results that are computed together.

    These include one that assembles each result.
    """
    if every[0].are_expressions:
        return count_of_expressions([(one.holders, (*one.gather(), one.keys)) for one in every])
    graph = HighLevelGraph.merge(*(tasks.graph for tasks in every))
    keys = [key for tasks in every for key in tasks.keys]
    chunks = chunk_layers_among(graph.layers)
    ours, others = 0, 0
    for name, layer in fused(graph, keys).items():
        if name in chunks:
            chunk = chunks[name]
            ours += len(chunk.task_keys if isinstance(chunk, ChunkBlockwise) else chunk)
        elif is_never_fused(layer):
            ours += len(layer)
        else:
            others += len(layer)
    # dask fuses other layers task by task, which takes 0.1 ms for each
    return len(every) + (ours + others if others < 2 else len(optimized(graph, keys)))


def build_chunks(plan: Plan, array: da.Array, replacement: Any, token: str) -> Tasks:
    """Return tasks that give the partial results of each chunk; see `RunLayers` for the rest."""
    run = RunLayers(plan, array, replacement, token)
    keys = add_chunks_of_all_groups(run)
    return _optimized(*_with_source(run), list(keys))


def build_parameters(recipe: Recipe, token: str) -> Tasks | None:
    """Return tasks that give the recipe with computed values of its lazy parameters, if any."""
    if not recipe.lazy_slots:
        return None
    key, layers, dependencies = shared_recipe(recipe, f"recipe-{token}")
    return _optimized(layers, dependencies, [key])


def _optimized(
    layers: dict[str, Any], dependencies: Mapping[str, set[str]], keys: list[Key]
) -> Tasks:
    """Return layers as tasks, optimized as those of dask arrays are."""
    dsk = optimized(HighLevelGraph(layers, dependencies), keys)
    return Tasks(dsk=dsk, keys=keys, layers=chunk_layers_among(layers))


def _with_source(run: RunLayers) -> tuple[dict[str, Any], dict[str, set[str]]]:
    """Return all layers of a run, those that load the data included, and their dependencies."""
    source = run.array.dask
    return {**source.layers, **run.layers}, {**source.dependencies, **run.depends}


def _results_of(run: RunLayers, number: int, chunks: TaskKeys) -> ResultTasks:
    """Add the merges and `get_results` of one UDF; return the tasks that hold its results."""
    udf = run.recipe.udfs[number]
    rows, reduced = chunks, None
    if udf.outputs:
        rows, reduced = add_merges(run, number, add_parts(run, number, chunks))
        if udf.has_get_results:
            held = held_by(run, number, rows, chunks)
            rows, reduced = add_finalize(run, number, rows, reduced, held)
        kinds = {spec.kind for spec in udf.outputs.values()}
        # over an empty ROI, get_results still runs
        if kinds == {"nav"} and (len(rows) or not udf.has_get_results):
            reduced = None
        if "nav" not in kinds:
            rows = numbered_keys(0)
    rows_only = add_rows_only(run, number, rows, reduced, chunks)
    if not len(rows_only) and reduced is None:
        reduced = (run.name("nothing", number), 0)  # a dask collection needs at least one key
        run.layers[reduced[0]] = ListedTasks({reduced: Task(reduced, Partial, {}, 0, 0, {})})
        run.depends[reduced[0]] = set()
    names = layers_of_keys(rows, rows_only, [reduced] if reduced else [])
    return ResultTasks(
        graph=HighLevelGraph(*_with_source(run)).cull_layers(names),
        rows=rows,
        rows_only=rows_only,
        reduced=reduced,
        number=number,
        finalized=udf.has_get_results,
        flat=bool(udf.outputs) and udf.has_get_results and not udf.elementwise,
        grid=run.recipe.grid,
        sig=tuple(run.recipe.shape.sig),
        specs=udf.outputs,
        result_backend=run.recipe.result_backend,
        udf_name=udf.name,
        token=f"{run.token}_{number}",
        are_expressions=run.makes_expressions,
    )


def add_merges(run: RunLayers, number: int, sources: TaskKeys) -> tuple[TaskKeys, Key | None]:
    """Add the merges of a UDF; return the keys with the nav rows of each chunk, and the last."""
    tree, name = run.recipe.udfs[number].merge, run.name("merge", number)
    if tree.last is None:
        return sources, None
    depends = layers_of_keys(sources) | run.recipe_layers
    run.add(name, sum(tree.sizes), depends, _merges, run.recipe_argument, number, tree, sources)
    return merged_row_keys(name, tree), (name, *tree.last)


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
    run: RunLayers, number: int, rows: TaskKeys, reduced: Key | None, held: int
) -> tuple[TaskKeys, Key]:
    """Add the calls of `get_results`; return the keys with each chunk's results, and the last.

    `held` is the size in bytes of what one of the tasks `rows` returns for a chunk.
    """
    udf, name = run.recipe.udfs[number], run.name("finish", number)
    merged = reduced if udf.has_reduced else None
    by_chunk = udf.elementwise and len(rows) > 0
    # a UDF without any buffer gets the rows of its aux data from the chunks
    needs_rows = udf.has_nav or (merged is None and udf.carries_aux)
    places = len(rows) if by_chunk else None
    sources: Sequence[Key] = rows if needs_rows else ()
    if needs_rows and not by_chunk:
        # chunks that a tree has merged share a source
        nav = [key for key, spec in udf.allocated.items() if spec.kind == "nav"]
        sources = gathered(run, number, rows.distinct, held, nav)
    depends = layers_of_keys(sources, [merged] if merged else [])
    given = (run.recipe_argument, number, places, sources, merged)
    run.add(name, places or 1, depends | run.recipe_layers, _finishes, *given)
    return numbered_keys(len(rows) if by_chunk else min(1, len(rows)), name), (name, 0)


def _finishes(
    name: str,
    recipe: Any,
    number: int,
    places: int | None,
    rows: Sequence[Key],
    merged: Key | None,
) -> dict[Key, Task]:
    """Return the tasks that call `get_results`: for each of so many chunks, or once."""
    reduced = None if merged is None else TaskRef(merged)

    def task(place: int, chunk: int | None, sources: Sequence[Key]) -> OutputTask:
        partials = List(*map(TaskRef, sources))
        return OutputTask((name, place), _finalize, recipe, number, chunk, partials, reduced)

    if places is not None:
        return {(name, c): task(c, c, rows[c : c + 1]) for c in range(places)}
    return {(name, 0): task(0, None, rows)}


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
