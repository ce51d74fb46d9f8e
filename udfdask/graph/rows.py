"""The tasks that hold the rows of nav results and little else, and how much tasks hold.

Partial results wait in memory until a later task reads them, and are sent to its worker.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from udfdask.chunk.result_blocks import holder_of, join_rows
from udfdask.graph.dask_internals.tasks import Key, List, OutputTask, Task, TaskRef
from udfdask.graph.run_layers import RunLayers, TaskKeys, layers_of_keys, numbered_keys
from udfdask.udf.buffers import BufferSpec

MAX_UNUSED_BYTES = 1 << 10
"""A task may keep this much in memory in addition to nav results: one more task needs as much."""

MAX_UNUSED_BYTES_OF_ALL = 4 << 20
"""All tasks together may keep this much: to send it takes 40 ms at 100 MB/s, as long as 40 tasks on
a cluster."""

MANY_SOURCES = 256
"""If the rows are in more tasks than this, no task reads from all of them."""

MAX_GATHERED_BYTES = 4 << 20
"""Largest size of what a task reads to gather rows, if it can read from `FEW_SOURCES`."""

FEW_SOURCES = 8
"""Rows are not gathered from fewer tasks than this: they are large, and would be copied."""

MAX_OTHER_BYTES = 64 << 10
"""If a chunk task returns more bytes for other UDFs than this, merges read from a task between."""


def add_rows_only(
    run: RunLayers, number: int, rows: TaskKeys, reduced: Key | None, chunks: TaskKeys
) -> Sequence[Key]:
    """Return the tasks that hold the rows of nav results, and little else.

    Their values wait in memory and are sent: tasks that have much else get one that leaves it out.
    """
    udf = run.recipe.udfs[number]
    sources: Sequence[Key] = rows.distinct
    # dask would fuse a single chunk task with the task that assembles the result, under another
    # name: an array of the result that is computed at the same time would run it again
    single_chunk = rows is chunks and len(sources) == 1
    held = _nbytes(run, udf.outputs.values())
    if rows is chunks or not udf.has_get_results:
        held = held_by(run, number, rows, chunks)
    unused = held - _nbytes(run, (spec for spec in udf.outputs.values() if spec.kind == "nav"))
    limit = max(MAX_UNUSED_BYTES, MAX_UNUSED_BYTES_OF_ALL // max(1, len(sources)))
    if len(sources) > MANY_SOURCES:  # tasks that gather rows leave out the rest
        limit = MAX_OTHER_BYTES
    is_last = len(sources) == 1 and sources[0] == reduced
    names = [name for name, spec in udf.outputs.items() if spec.kind == "nav"]
    if single_chunk or (unused > limit and not is_last):
        sources, held = _add_rows(run, "rows", number, sources, 1, names), held - unused
    return gathered(run, number, sources, held, names)


def gathered(
    run: RunLayers, number: int, sources: Sequence[Key], held: int, names: Sequence[str]
) -> Sequence[Key]:
    """Return tasks with the nav buffers of some tasks: fewer ones if there are very many.

    `held` is the size in bytes of what one of them returns for a chunk. With n chunks, no task then
    has more than about sqrt(n) inputs, and clients of clusters have as many keys.
    """
    n = len(sources)
    if n <= MANY_SOURCES:
        return sources
    most = MAX_GATHERED_BYTES // max(1, held * math.ceil(run.recipe.grid.n_chunks / n))
    if most < FEW_SOURCES:
        return sources
    n_groups = math.ceil(n / min(math.isqrt(n), most))
    return _add_rows(run, "gather", number, sources, math.ceil(n / n_groups), names)


def _add_rows(
    run: RunLayers,
    stage: str,
    number: int,
    sources: Sequence[Key],
    size: int,
    names: Sequence[str],
) -> TaskKeys:
    """Add tasks that hold some nav buffers of `size` neighbors each, and nothing else."""
    name, n = run.name(stage, number), math.ceil(len(sources) / size)
    run.add(name, n, layers_of_keys(sources), _joined_rows, sources, size, number, names)
    return numbered_keys(n, name)


def _joined_rows(
    name: str, sources: Sequence[Key], size: int, number: int, names: Sequence[str]
) -> dict[Key, Task]:
    """Return the tasks of `_add_rows`."""
    tasks: dict[Key, Task] = {}
    for n, first in enumerate(range(0, len(sources), size)):
        some = List(*map(TaskRef, sources[first : first + size]))
        tasks[name, n] = OutputTask((name, n), join_rows, some, number, names)
    return tasks


def _nbytes(run: RunLayers, specs: Iterable[BufferSpec]) -> int:
    """Return the size of some buffers for the largest chunk, in bytes."""
    n_rows = int(run.recipe.grid.counts.max(initial=0))
    return sum(spec.nbytes(n_rows, run.recipe.shape.sig) for spec in specs)


def held_by(run: RunLayers, number: int, keys: TaskKeys, chunks: TaskKeys) -> int:
    """Return the bytes that a task before `get_results` returns for the largest chunk."""
    return _held_bytes(run, (number, *_others(run, number)) if keys is chunks else (number,))


def _others(run: RunLayers, number: int) -> list[int]:
    """Return the numbers of the other UDFs that run in the chunk tasks of a UDF."""
    group = next(group for group in run.groups if number in group.numbers)
    return [other for other in group.numbers if other != number]


def _held_bytes(run: RunLayers, numbers: Iterable[int]) -> int:
    """Return the bytes that the partial results of UDFs hold, for the largest chunk."""
    n_rows = int(run.recipe.grid.counts.max(initial=0))
    udfs = [run.recipe.udfs[number] for number in numbers]
    carried = [udf.aux[name] for udf in udfs if udf.carries_aux for name in udf.nav_aux]
    aux = sum(n_rows * math.prod(aux.extra_shape) * aux.dtype.itemsize for aux in carried)
    return aux + sum(_nbytes(run, udf.allocated.values()) for udf in udfs)


def add_parts(run: RunLayers, number: int, chunks: TaskKeys) -> TaskKeys:
    """Return the tasks that merges of one UDF read: chunk tasks, or new ones that pick its part."""
    if _held_bytes(run, _others(run, number)) <= MAX_OTHER_BYTES:
        return chunks
    return run.add_for_each(run.name("part", number), chunks, holder_of, number)
