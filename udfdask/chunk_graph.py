"""Adds the tasks that see the data: one per chunk, or per signal chunk of it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import dask.array as da
import numpy as np
from dask._task_spec import DataNode, List, Task, TaskRef
from dask.highlevelgraph import MaterializedLayer

from udfdask.auxdata import block_of
from udfdask.chunk import join_parts, run_chunk
from udfdask.chunk_layers import ChunkBlockwise, ChunkTasks, Key, Visits
from udfdask.output_task import OutputTask
from udfdask.run_layers import RunLayers


def add_chunks(run: RunLayers) -> list[Key]:
    """Add the tasks that see the data; return the key of each chunk's payload."""
    name = run.name("chunk")
    n = run.recipe.n_blocks
    chunks = range(run.recipe.grid.n_chunks)
    others = run.shared_layers | _aux_layers(run)
    aux = [_aux(run, c) for c in chunks] if run.aux else None
    if n > 1 and not run.recipe.by_sig_chunk:
        tasks: dict[Key, Task] = {}
        for c in chunks:
            more = () if aux is None else (aux[c],)
            blocks = List(*_blocks(run, c))
            tasks[name, c] = Task((name, c), run_chunk, run.shared, c, blocks, *more)
        numbers = dict(zip(tasks, chunks, strict=True))
        visits = Visits(array_name=run.array.name, recipe=run.recipe, chunks=numbers)
        run.layers[name] = ChunkTasks(tasks, visits)
        run.depends[name] = {run.array.name, *others}
        return list(tasks)
    inline = not isinstance(run.shared, TaskRef)
    layer = ChunkBlockwise(name, run.recipe, run.array, run.shared if inline else None)
    data = _data(run.array)
    written = data is not None or aux is not None or not inline
    run.layers[name] = layer.as_tasks(run.shared, data, aux) if written else layer
    loads = {run.array.name} if data is None else set()
    run.depends[name] = loads | others
    keys = list(layer.places)
    return _joined(run, keys, n) if run.recipe.by_sig_chunk else keys


def _blocks(run: RunLayers, chunk: int) -> list[TaskRef]:
    """Return the keys of the blocks of a chunk, in C order of the signal chunks."""
    index = run.recipe.grid.index(chunk)
    counts = [range(len(c)) for c in run.recipe.sig_chunks]
    return [TaskRef((run.array.name, *index, *s)) for s in itertools.product(*counts)]


def _aux(run: RunLayers, chunk: int) -> Any:
    """Return the aux data of a chunk: arrays, and keys of lazy ones."""
    grid = run.recipe.grid
    pieces: list[Any] = []
    for values in run.aux:
        if isinstance(values, da.Array):
            extra = (0,) * (values.ndim - len(grid.shape))
            pieces.append(TaskRef((values.name, *grid.index(chunk), *extra)))
        else:
            pieces.append(block_of(values, grid, chunk))
    return List(*pieces)


def _aux_layers(run: RunLayers) -> set[str]:
    """Add the layers of lazy aux data; return those that tasks read from."""
    lazy = [values for values in run.aux if isinstance(values, da.Array)]
    for values in lazy:
        run.layers.update(values.dask.layers)
        run.depends.update({n: set(d) for n, d in values.dask.dependencies.items()})
    return {values.name for values in lazy}


def _joined(run: RunLayers, keys: list[Key], n: int) -> list[Key]:
    """Add one task per chunk that joins its `n` signal chunks; return their keys."""
    groups = [keys[k : k + n] for k in range(0, len(keys), n)]
    name = run.name("join")
    tasks: dict[Key, Task] = {}
    for c, group in enumerate(groups):
        key = (name, c)
        tasks[key] = OutputTask(key, join_parts, run.shared, c, List(*map(TaskRef, group)))
    run.add(name, tasks, {keys[0][0], *run.shared_layers} if keys else set())
    return list(tasks)


def _data(array: da.Array) -> Mapping[Key, Any] | None:
    """Return the blocks of an array if they lie in its graph, so that nothing has to load them."""
    layer: Any = array.dask.layers[array.name]
    if not isinstance(layer, MaterializedLayer):
        return None
    # a layer may hold data beside tasks that read them, as that of random numbers does
    known = all(isinstance(block, (np.ndarray, DataNode)) for block in layer.values())
    return layer.mapping if known else None
