"""Builds the dask graph of a plan: map over chunks, merges, get_results.

Layers of a run over chunks c, for the UDF with number k::

    chunk   c -> payload, one partial per UDF             (fused with loading by dask; two, with
                                                          loading apart, where only some UDFs need
                                                          a CUDA device)
    join    payloads of its signal chunks -> payload      (where each of them has a task)
    part    payload -> partial k                          (where payloads of others are heavy)
    merge   partials -> partial                           (tree, chain, rows or merge_all)
    finish  merged partials -> results                    (where there is a get_results)
    rows    any of these -> nav results alone             (where it holds much else)

A result as a whole is computed from the last of these; `result_tasks` adds the blocks of dask
arrays, for those that somebody asks for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import dask.array as da
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from udfdask.chunk.partial_result import Partial
from udfdask.graph.chunk_layers import Key
from udfdask.graph.chunk_tasks import add_chunks, add_payloads
from udfdask.graph.dask_internals import OutputTask, Task, TaskRef, optimized
from udfdask.graph.layer_builder import RunLayers
from udfdask.graph.merge_tasks import add_finalize, add_merges, partials_of
from udfdask.graph.result_tasks import ResultTasks, layers_of
from udfdask.graph.shared_recipe import shared_recipe
from udfdask.merge.result_blocks import keep_rows
from udfdask.plan.plan import Plan
from udfdask.plan.recipe import Recipe, UDFRecipe
from udfdask.udf.buffers import BufferSpec

LIGHT = 1 << 10
"""Bytes that a chunk may keep in memory unasked for: what a task and its containers take anyway."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """Optimized tasks and the keys of their results."""

    dsk: dict[Key, Any]
    """Tasks by key."""
    keys: list[Key]
    """Keys of the results."""


def build_graph(plan: Plan, array: da.Array) -> tuple[ResultTasks, ...]:
    """Return the tasks that hold the results of every UDF of a plan."""
    run = RunLayers(plan, array)
    payloads = add_chunks(run)
    return tuple(_results_of(run, number, keys) for number, keys in enumerate(payloads))


def build_chunks(plan: Plan, array: da.Array, given: Any, token: str) -> Tasks:
    """Return tasks that give the payload of each chunk, for whoever merges them outside of dask.

    `given` and `token` are those of `RunLayers`.
    """
    run = RunLayers(plan, array, given, token)
    keys = add_payloads(run)
    source = run.array.dask
    layers = {**source.layers, **run.layers}
    return _optimized(layers, {**source.dependencies, **run.depends}, keys)


def build_parameters(recipe: Recipe, token: str) -> Tasks | None:
    """Return tasks that give the recipe with its lazy parameters filled in; None without any."""
    if not recipe.lazy_slots:
        return None
    filled = shared_recipe(recipe, f"recipe-{token}")
    return _optimized(filled.layers, filled.dependencies, [filled.key])


def _optimized(
    layers: dict[str, Any], dependencies: Mapping[str, set[str]], keys: list[Key]
) -> Tasks:
    """Return layers as tasks, optimized as those of dask arrays are."""
    return Tasks(dsk=optimized(HighLevelGraph(layers, dependencies), keys), keys=keys)


def _results_of(run: RunLayers, number: int, payloads: list[Key]) -> ResultTasks:
    """Add merges and get_results of one UDF; return the tasks that hold its results."""
    udf = run.recipe.udfs[number]
    rows: list[Key] = payloads
    whole: Key | None = None
    if udf.outputs:
        rows, whole = add_merges(run, number, udf, partials_of(run, number, payloads))
        if udf.has_get_results:
            rows, whole = add_finalize(run, number, udf, rows, whole)
        kinds = {spec.kind for spec in udf.outputs.values()}
        # over no frame at all, get_results still runs
        needs_whole = kinds != {"nav"} or (udf.has_get_results and not rows)
        rows, whole = rows if "nav" in kinds else [], whole if needs_whole else None
    kept = _kept(run, number, udf, rows, whole, payloads)
    if not kept and whole is None:
        whole = (run.name("nothing", udf), 0)  # a collection has at least one key
        run.add(whole[0], {whole: Task(whole, Partial, {}, 0, 0, {})}, set())
    every = {**run.array.dask.layers, **run.layers}
    depends = {**run.array.dask.dependencies, **run.depends}
    names = {key[0] for key in (*rows, *kept, *((whole,) if whole else ()))}
    return ResultTasks(
        graph=layers_of(every, depends, names),
        rows=tuple(rows),
        kept=tuple(kept),
        whole=whole,
        number=number,
        finished=udf.has_get_results,
        flat=udf.has_get_results and not udf.elementwise,
        grid=run.recipe.grid,
        sig=tuple(run.recipe.shape.sig),
        specs=udf.outputs,
        result_backend=run.recipe.result_backend,
        udf_name=udf.name,
        token=tokenize(run.token, number),
    )


def _kept(
    run: RunLayers,
    number: int,
    udf: UDFRecipe,
    rows: list[Key],
    whole: Key | None,
    payloads: list[Key],
) -> list[Key]:
    """Return the tasks that hold the rows of nav results, and little else.

    They stay in memory until the whole result is there, and travel to whoever asked for it. Where
    they would hold much else, such as the sig buffers of merges, tasks are added that leave it out.
    """
    sources = list(dict.fromkeys(rows))
    # dask would fuse a single chunk task with what makes a result of it, under another name
    fused = rows is payloads and len(sources) == 1
    light = sources == [whole] or _unasked_bytes(run, number, udf, rows is payloads) <= LIGHT
    if light and not fused:
        return sources
    name = run.name("rows", udf)
    names = [name for name, spec in udf.outputs.items() if spec.kind == "nav"]
    tasks: dict[Key, Task] = {
        (name, n): OutputTask((name, n), keep_rows, TaskRef(source), number, names)
        for n, source in enumerate(sources)
    }
    run.add(name, tasks, {source[0] for source in sources})
    return list(tasks)


def _unasked_bytes(run: RunLayers, number: int, udf: UDFRecipe, in_payload: bool) -> int:
    """Return the bytes beside nav results in a task that holds these, for the largest chunk."""
    recipe = run.recipe
    n_rows = int(recipe.grid.counts.max(initial=0))

    def total(specs: Iterable[BufferSpec]) -> int:
        return sum(spec.nbytes(n_rows, recipe.shape.sig) for spec in specs)

    asked = total(spec for spec in udf.outputs.values() if spec.kind == "nav")
    if udf.has_get_results and not in_payload:
        return total(udf.outputs.values()) - asked
    udfs = [udf]
    if in_payload:
        group = next(group for group in run.groups if number in group.numbers)
        udfs = [recipe.udfs[k] for k in group.numbers]
    aux = sum(
        n_rows * math.prod(u.aux[name].extra_shape) * u.aux[name].dtype.itemsize
        for u in udfs
        if u.carries_aux
        for name in u.nav_aux
    )
    return sum(total(u.allocated.values()) for u in udfs) + aux - asked
