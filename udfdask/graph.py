"""Builds the dask graph of a plan: map over chunks, merges, outputs.

Layers of a run over chunks c, for the UDF with number k::

    chunk   c -> payload, one partial per UDF             (fused with loading by dask; two, with
                                                          loading apart, where only some UDFs need
                                                          a CUDA device)
    join    payloads of its signal chunks -> payload      (where each of them has a task)
    part    payload -> partial k                          (where payloads of others are heavy)
    merge   partials -> partial                           (tree, chain, rows or merge_all)
    finish  merged partials -> results                    (where there is a get_results)
    output  any of these -> blocks of one dask array
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from dask._task_spec import Task, TaskRef, convert_legacy_graph
from dask.highlevelgraph import HighLevelGraph
from dask.utils import ensure_dict

from udfdask.buffers import BufferSpec
from udfdask.chunk_graph import add_chunks, add_payloads
from udfdask.chunk_layers import Key
from udfdask.finish import (
    fill_block,
    nav_block,
    nav_mask_block,
    visited_block,
    whole_block,
    whole_mask_block,
)
from udfdask.merge_graph import add_finish, add_merges, partials_of
from udfdask.output_task import OutputTask
from udfdask.plan import Plan
from udfdask.recipe import Recipe, UDFRecipe
from udfdask.run_layers import RunLayers
from udfdask.shared_recipe import shared_recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """The dask arrays of one UDF."""

    arrays: dict[str, da.Array]
    """Results by name, in data set shape."""
    masks: dict[str, da.Array]
    """Valid masks of the results of a get_results, which may have given its own."""
    visited: da.Array | None
    """For a UDF without results: true where its chunks have been processed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """Optimised tasks and the keys of their results."""

    dsk: dict[Key, Any]
    """Tasks by key."""
    keys: list[Key]
    """Keys of the results."""


def build_graph(plan: Plan, array: da.Array) -> tuple[Outputs, ...]:
    """Return the dask arrays of every UDF of a plan."""
    run = RunLayers(plan, array)
    payloads = add_chunks(run)
    return tuple(_outputs_of(run, number, keys) for number, keys in enumerate(payloads))


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
    """Return layers as tasks, optimised as those of dask arrays are."""
    graph = da.Array.__dask_optimize__(HighLevelGraph(layers, dependencies), keys)
    return Tasks(dsk=dict(convert_legacy_graph(ensure_dict(graph))), keys=keys)


def _outputs_of(run: RunLayers, number: int, payloads: list[Key]) -> Outputs:
    """Add merges, get_results and outputs of one UDF."""
    udf = run.recipe.udfs[number]
    rows, whole = add_merges(run, number, udf, partials_of(run, number, payloads))
    if udf.finish:
        rows, whole = add_finish(run, number, udf, rows, whole)
    return _outputs(run, number, udf, rows, whole, payloads)


def _outputs(
    run: RunLayers,
    number: int,
    udf: UDFRecipe,
    rows: list[Key],
    whole: Key | None,
    payloads: list[Key],
) -> Outputs:
    """Return the dask arrays of a UDF."""
    arrays, masks = {}, {}
    # over no frame at all, get_results still runs
    after = whole if udf.finish and not rows else None
    for name, spec in udf.outputs.items():
        what = (run.shared, number, name)
        if spec.kind == "nav":
            layer = run.name("nav", udf, name)
            arrays[name] = _nav_array(
                run, layer, rows, spec, spec.dtype, spec.fill, nav_block, what, after
            )
        else:
            assert whole is not None
            layer = run.name(spec.kind, udf, name)
            arrays[name] = _whole_array(run, layer, whole, spec, spec.dtype, whole_block, what)
        if udf.finish:
            layer = run.name("mask", udf, name)
            flag = np.dtype(bool)
            if spec.kind == "nav":
                masks[name] = _nav_array(run, layer, rows, spec, flag, False, nav_mask_block, what)
            else:
                assert whole is not None
                masks[name] = _whole_array(run, layer, whole, spec, flag, whole_mask_block, what)
    visited = None
    if not arrays:
        spec = BufferSpec(kind="nav", extra_shape=(), dtype=np.dtype(bool))
        visited = _nav_array(
            run,
            run.name("visited", udf),
            payloads,
            spec,
            spec.dtype,
            False,
            visited_block,
            (run.shared,),
        )
    return Outputs(arrays=arrays, masks=masks, visited=visited)


def _nav_array(
    run: RunLayers,
    name: str,
    sources: list[Key],
    spec: BufferSpec,
    dtype: np.dtype[Any],
    fill: Any,
    function: Callable[..., Any],
    what: tuple[Any, ...],
    after: Key | None = None,
) -> da.Array:
    """Return a dask array over nav, a block from each chunk and fill where there is none.

    Fill waits for the task `after`.
    """
    grid, extra = run.recipe.grid, spec.extra_shape
    zeros = (0,) * len(extra)
    tasks: dict[Key, Task] = {}
    for c, source in enumerate(sources):
        key = (name, *grid.index(c), *zeros)
        tasks[key] = OutputTask(key, function, *what, c, TaskRef(source))
    if len(sources) < math.prod(grid.numblocks):
        for place in itertools.product(*map(range, grid.numblocks)):
            key = (name, *place, *zeros)
            if key not in tasks:
                sizes = tuple(n[i] for n, i in zip(grid.nav_chunks, place, strict=True))
                there = run.recipe.outputs_on_device(dtype)
                block = (fill_block, (*sizes, *extra), dtype, fill, there)
                if after is None:
                    tasks[key] = Task(key, *block)
                else:
                    tasks[key] = OutputTask(key, *block, TaskRef(after))
    chunks = (*grid.nav_chunks, *((n,) for n in extra))
    depends = {s[0] for s in sources} | ({after[0]} if after else set())
    return run.array_of(name, tasks, depends, chunks, dtype)


def _whole_array(
    run: RunLayers,
    name: str,
    source: Key,
    spec: BufferSpec,
    dtype: np.dtype[Any],
    function: Callable[..., Any],
    what: tuple[Any, ...],
) -> da.Array:
    """Return a dask array of one block from one task."""
    shape = spec.shape(0, run.recipe.shape.sig)
    if spec.kind == "single":
        shape = spec.extra_shape
    key = (name, *(0 for _ in shape))
    tasks: dict[Key, Task] = {key: OutputTask(key, function, *what, TaskRef(source))}
    return run.array_of(name, tasks, {source[0]}, tuple((n,) for n in shape), dtype)
