"""Make the tasks of runs store their partial results, and read those that are stored.

Chunk tasks and merges keep their keys, so that arrays derived from results work too. A task that
reads a record needs no block: dask then removes the loading of the block from the graph.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from udfdask.backends.table import in_backend, to_host
from udfdask.chunk.partial_result import Partial, Partials
from udfdask.errors import UDFWarning
from udfdask.graph.dask_internals.layers import in_one_layer, optimized_together
from udfdask.graph.dask_internals.tasks import Key, OutputTask, alias_target, cull
from udfdask.graph.run_layers import layer_name
from udfdask.scheduling.records.folder import Record, RecordFolder
from udfdask.scheduling.records.runs import Lookup, Node, Run, Saved

Lookups = Sequence[tuple[Run, Mapping[int, Lookup]]]
"""Runs, with the lookups of those of their UDFs that are needed."""


def with_records(
    collections: list[Any], lookups: Lookups, folder: RecordFolder
) -> tuple[list[Any], dict[Key, bool]]:
    """Return collections whose tasks store partial results and read those that are stored.

    Also return the chunk tasks that compute nothing; True if a stored merge replaces their result.
    """
    # A blockwise layer loads all its blocks. So dask makes the tasks first, as it would later.
    tasks, futures, keys = optimized_together(collections)
    done: dict[Key, bool] = {}
    for run, by_udf in lookups:
        recipe = run.recipe
        for info in run.chunk_layers.values():
            ours = {k: by_udf[k].chunks for k in info.numbers if k in by_udf}
            join = layer_name(recipe, "join", group=info.group)
            whole = {}
            for key, chunk in info.chunks.items() if ours else ():
                actions = {chunks[chunk].action for chunks in ours.values()}
                if "compute" not in actions:
                    done[key] = "nothing" in actions
                # the results of signal chunks are those of a whole chunk when they are joined
                whole[(join, chunk) if recipe.by_sig_chunk else key] = chunk
            for key, chunk in whole.items():
                nodes = {k: chunks[chunk] for k, chunks in ours.items()}
                if any(node.action == "compute" for node in nodes.values()):
                    _store_results(tasks, key, folder, nodes)
                elif key in tasks:
                    stored = {k: node.saved for k, node in nodes.items() if node.action == "read"}
                    n_udfs = len(recipe.udfs)
                    tasks[key] = OutputTask(key, _read_chunk, folder, stored, chunk, n_udfs)
        for number, lookup in by_udf.items():
            for place, node in lookup.merges.items():
                key = (layer_name(recipe, "merge", number), *place)
                if node.action == "compute":
                    _store_results(tasks, key, folder, {None: node})
                elif node.action == "read" and key in tasks:
                    tasks[key] = OutputTask(key, _read, folder, node.saved, node.first, node.stop)
    return in_one_layer(collections, cull(tasks, keys) | futures), done


def _store_results(
    tasks: dict[Any, Any], key: Key, folder: RecordFolder, nodes: Mapping[Any, Node]
) -> None:
    """Make a task store its partial results of some UDFs, by number; None if it has only one."""
    if key not in tasks:
        return
    target = alias_target(tasks[key])
    key = key if target is None else target
    places = [
        (number, node.saved, node.superfluous if folder.limit is None else ())
        for number, node in nodes.items()
        if node.action == "compute"
    ]
    tasks[key] = OutputTask(key, _stored, folder, places, tasks[key])


def _stored(
    folder: RecordFolder,
    places: Sequence[tuple[int | None, Saved, tuple[str, ...]]],
    computed: Any,
) -> Any:
    """Return computed partial results after storing them; the task goes on if the disk is full."""
    for number, saved, superfluous in places:
        partial: Partial = computed if number is None else computed[number]
        name = saved.names[-1] if partial.looked_beyond else saved.name
        arrays = {key: to_host(array) for key, array in partial.arrays.items()}
        try:
            folder.put(Record(name, arrays, partial.aux), superfluous)
        except OSError as error:
            message = f"some results could not be kept in {os.fspath(folder)}: {error}"
            warnings.warn(message, UDFWarning, stacklevel=2)
    return computed


def _read_chunk(
    folder: RecordFolder, stored: Mapping[int, Saved], chunk: int, n_udfs: int
) -> Partials:
    """Return the partial results of a chunk that are stored, with None for all other UDFs."""
    return tuple(
        _read(folder, stored[k], chunk, chunk + 1) if k in stored else None for k in range(n_udfs)
    )


def _read(folder: RecordFolder, saved: Saved, first: int, stop: int) -> Partial:
    """Return a stored partial result over some chunks.

    Raise a DamagedRecordError if its record is missing or damaged.
    """
    record = folder.get(saved.name)
    arrays = dict(record.arrays)
    for name, backend in saved.on_device:
        if name in arrays:  # a merge of merges has no nav rows
            arrays[name] = in_backend(arrays[name], backend)
    return Partial(arrays, first, stop, dict(record.aux))
