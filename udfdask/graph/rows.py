"""The tasks that hold the rows of nav results and little else, and how much tasks hold.

Partial results wait in memory until a later task reads them, and are sent to its worker.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from udfdask.chunk.result_blocks import holder_of, keep_rows
from udfdask.graph.dask_internals.tasks import Key
from udfdask.graph.run_layers import RunLayers, TaskKeys
from udfdask.udf.buffers import BufferSpec

MAX_UNUSED_BYTES = 1 << 10
"""A task may keep this much in memory in addition to nav results: one more task needs as much."""

MAX_UNUSED_BYTES_OF_ALL = 4 << 20
"""All tasks together may keep this much: to send it takes 40 ms at 100 MB/s, as long as 40 tasks on
a cluster."""

MAX_OTHER_BYTES = 64 << 10
"""If a chunk task returns more bytes for other UDFs than this, merges read from a task between."""

MAX_WAITING_BYTES = 1 << 30
"""The same for all chunk tasks together: their results may wait in memory for `get_results`."""


def add_rows_only(
    run: RunLayers, number: int, rows: TaskKeys, reduced: Key | None, chunks: TaskKeys
) -> Sequence[Key]:
    """Return the tasks that hold the rows of nav results, and little else.

    Their values wait in memory and are sent: tasks that have much else get one that leaves it out.
    """
    udf, sources = run.recipe.udfs[number], rows.distinct
    # dask would fuse a single chunk task with the task that assembles the result, under another
    # name: an array of the result that is computed at the same time would run it again
    single_chunk = rows is chunks and len(sources) == 1
    held = _nbytes(run, udf.outputs.values())
    if rows is chunks:
        held = _held_bytes(run, (number, *_others(run, number)))
    elif not udf.has_get_results:
        held = _held_bytes(run, (number,))
    unused = held - _nbytes(run, (spec for spec in udf.outputs.values() if spec.kind == "nav"))
    limit = max(MAX_UNUSED_BYTES, MAX_UNUSED_BYTES_OF_ALL // max(1, len(sources)))
    is_last = len(sources) == 1 and sources[0] == reduced
    if (is_last or unused <= limit) and not single_chunk:
        return sources
    names = [name for name, spec in udf.outputs.items() if spec.kind == "nav"]
    return run.add_for_each(run.name("rows", number), sources, keep_rows, number, names)


def _nbytes(run: RunLayers, specs: Iterable[BufferSpec]) -> int:
    """Return the size of some buffers for the largest chunk, in bytes."""
    n_rows = int(run.recipe.grid.counts.max(initial=0))
    return sum(spec.nbytes(n_rows, run.recipe.shape.sig) for spec in specs)


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
    limit = min(MAX_OTHER_BYTES, MAX_WAITING_BYTES // max(1, len(chunks)))
    if _held_bytes(run, _others(run, number)) <= limit:
        return chunks
    return run.add_for_each(run.name("part", number), chunks, holder_of, number)
