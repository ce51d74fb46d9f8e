"""Adds the tasks that see the data: one per chunk, or per signal chunk of it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from udfdask.chunk.run_chunk import join_groups, join_parts, run_chunk
from udfdask.graph.chunk_layers import ChunkBlockwise, ChunkLayerInfo, ChunkTasks, Key, rest_of
from udfdask.graph.dask_internals import (
    GraphArray,
    List,
    OutputTask,
    Task,
    TaskRef,
    blocks_in_memory,
)
from udfdask.graph.layer_builder import RunLayers
from udfdask.plan.device_groups import Group
from udfdask.udf.aux_data import block_of


def add_chunks(run: RunLayers) -> list[list[Key]]:
    """Add the tasks that see the data; return the keys of each chunk's payload, for each UDF."""
    payloads: list[list[Key]] = [[] for _ in run.recipe.udfs]
    for group in run.groups:
        keys = _add_group(run, group)
        for number in group.numbers:
            payloads[number] = keys
    return payloads


def add_payloads(run: RunLayers) -> list[Key]:
    """Add the tasks that see the data; return the key of each chunk's payload, of all UDFs."""
    payloads = add_chunks(run)
    every = [payloads[group.numbers[0]] for group in run.groups]
    if len(every) == 1:
        return every[0]
    name = run.name("payload")
    tasks: dict[Key, Task] = {}
    for c, keys in enumerate(zip(*every, strict=True)):
        tasks[name, c] = OutputTask((name, c), join_groups, List(*map(TaskRef, keys)))
    run.add(name, tasks, {key[0] for keys in every for key in keys})
    return list(tasks)


def _add_group(run: RunLayers, group: Group) -> list[Key]:
    """Add the tasks that see the data for some UDFs; return the key of each chunk's payload."""
    alone = len(run.groups) == 1
    name = run.name("chunk", group=group)
    n = run.recipe.n_blocks
    chunks = range(run.recipe.grid.n_chunks)
    mine = [number in group.numbers for number, _ in run.recipe.aux_slots]
    lazy = _lazy_aux(run, mine)
    aux = [_aux(run, c, mine) for c in chunks] if any(mine) else None
    others = run.shared_layers | lazy
    # most runs are of one group that needs nothing, which their tasks need not be told
    told = (
        None
        if alone and not group.needs_cuda
        else replace(group, parameter_layers=tuple(sorted(others)))
    )
    if n > 1 and not run.recipe.by_sig_chunk:
        kind = Task if alone else OutputTask
        tasks: dict[Key, Task] = {}
        for c in chunks:
            rest = rest_of(None if aux is None else aux[c], told)
            blocks = List(*_blocks(run, c))
            tasks[name, c] = kind((name, c), run_chunk, run.shared, c, blocks, *rest)
        numbers = dict(zip(tasks, chunks, strict=True))
        visits = ChunkLayerInfo(
            array_name=run.array.name, recipe=run.recipe, chunks=numbers, group=told
        )
        run.layers[name] = ChunkTasks(tasks, visits)
        run.depends[name] = {run.array.name, *others}
        return list(tasks)
    layer = ChunkBlockwise(name, run.recipe, run.array, run.shared, told)
    data = blocks_in_memory(run.array)
    written = data is not None or aux is not None or not alone
    run.layers[name] = layer.as_tasks(run.shared, data, aux, alone=alone) if written else layer
    loads = {run.array.name} if data is None else set()
    run.depends[name] = loads | others
    keys = list(layer.visits.chunks)
    return _joined(run, group, keys, n) if run.recipe.by_sig_chunk else keys


def _blocks(run: RunLayers, chunk: int) -> list[TaskRef]:
    """Return the keys of the blocks of a chunk, in C order of the signal chunks."""
    index = run.recipe.grid.index(chunk)
    counts = [range(len(c)) for c in run.recipe.sig_chunks]
    return [TaskRef((run.array.name, *index, *s)) for s in itertools.product(*counts)]


def _aux(run: RunLayers, chunk: int, mine: Sequence[bool]) -> Any:
    """Return the aux data of a chunk: arrays, and keys of lazy ones; None for what is not mine."""
    grid = run.recipe.grid
    pieces: list[Any] = []
    for values, wanted in zip(run.aux, mine, strict=True):
        if not wanted:
            pieces.append(None)
        elif isinstance(values, GraphArray):
            extra = (0,) * (values.ndim - len(grid.shape))
            pieces.append(TaskRef((values.name, *grid.index(chunk), *extra)))
        else:
            pieces.append(block_of(values, grid, chunk))
    return List(*pieces)


def _lazy_aux(run: RunLayers, mine: Sequence[bool]) -> set[str]:
    """Add the layers of lazy aux data that are mine; return those that tasks read from."""
    pairs = zip(run.aux, mine, strict=True)
    lazy = [values for values, wanted in pairs if wanted and isinstance(values, GraphArray)]
    for values in lazy:
        run.layers.update(values.dask.layers)
        run.depends.update({n: set(d) for n, d in values.dask.dependencies.items()})
    return {values.name for values in lazy}


def _joined(run: RunLayers, group: Group, keys: list[Key], n: int) -> list[Key]:
    """Add one task per chunk that joins its `n` signal chunks; return their keys."""
    parts = [keys[k : k + n] for k in range(0, len(keys), n)]
    name = run.name("join", group=group)
    tasks: dict[Key, Task] = {}
    for c, few in enumerate(parts):
        key = (name, c)
        tasks[key] = OutputTask(key, join_parts, run.shared, c, List(*map(TaskRef, few)))
    run.add(name, tasks, {keys[0][0], *run.shared_layers} if keys else set())
    return list(tasks)
