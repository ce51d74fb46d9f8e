"""Make the tasks of runs store their partial results, and read those that are stored.

Chunk tasks and merges keep their keys, so that arrays derived from results work too. A task that
reads a record needs no block: dask then removes the loading of the block from the graph.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dask.highlevelgraph import HighLevelGraph

from udfdask.backends.table import in_backend, to_host
from udfdask.base.tracebacks import hides_own_lines
from udfdask.chunk.merge import merge_partials
from udfdask.chunk.partial_result import Partial, Partials, join_parts
from udfdask.chunk.result_blocks import holder_of
from udfdask.errors import UDFWarning
from udfdask.graph.chunk_layers import ChunkTasks
from udfdask.graph.dask_internals.layers import (
    PerBlock,
    TaskLayer,
    in_one_layer,
    optimized_together,
)
from udfdask.graph.dask_internals.tasks import Key, OutputTask, cull
from udfdask.graph.run_layers import layer_name
from udfdask.plan.recipe import Group, Recipe
from udfdask.scheduling.records.folder import Record, RecordFolder
from udfdask.scheduling.records.runs import Lookup, Run, Saved

Lookups = Sequence[tuple[Run, Mapping[int, Lookup]]]
"""Runs, with the lookups of those of their UDFs that are needed."""


def stored_tasks(lookups: Lookups) -> dict[Key, bool]:
    """Return the chunk tasks that compute nothing, and whether a stored merge replaces a result."""
    found: dict[Key, bool] = {}
    for run, by_udf in lookups:
        for info in run.chunk_layers.values():
            ours = [by_udf[number].chunks for number in info.numbers if number in by_udf]
            for key, chunk in info.chunks.items() if ours else ():
                actions = {nodes[chunk].action for nodes in ours}
                if "compute" not in actions:
                    found[key] = "nothing" in actions
    return found


def with_records(collections: Iterable[Any], lookups: Lookups, folder: RecordFolder) -> list[Any]:
    """Return collections whose tasks store partial results and read those that are stored."""
    layers: dict[str, Any] = {}
    reads: dict[Key, Any] = {}
    for run, by_udf in lookups:
        _add_chunks(run, by_udf, folder, layers, reads)
        _add_merges(run, by_udf, folder, layers)
    changed = [_rebuilt(collection, layers) for collection in collections]
    if not reads:
        return changed
    # A blockwise layer loads all its blocks. So dask makes the tasks first, as it would later.
    tasks, futures, keys = optimized_together(changed)
    tasks.update({key: task for key, task in reads.items() if key in tasks})
    return in_one_layer(changed, cull(tasks, keys) | futures)


def _add_chunks(
    run: Run,
    lookups: Mapping[int, Lookup],
    folder: RecordFolder,
    layers: dict[str, Any],
    reads: dict[Key, Any],
) -> None:
    """Add the changed layers of chunk tasks, and to `reads` the tasks that only read records."""
    for name, info in run.chunk_layers.items() if lookups else ():
        recipe, layer, records = info.recipe, run.layers[name], []
        for chunk in range(recipe.grid.n_chunks):
            nodes = [(k, lookups[k].chunks[chunk]) for k in info.numbers if k in lookups]
            computed, stored = (
                tuple((k, node.saved) for k, node in nodes if node.action == action)
                for action in ("compute", "read")
            )
            records.append(ChunkRecords(folder, chunk, len(recipe.udfs), computed, stored))
        if recipe.by_sig_chunk:
            join = layer_name(recipe, "join", group=info.group)
            tasks = {
                key: OutputTask(key, _join, *task.args, records[key[1]])
                if records[key[1]].computed
                else OutputTask(key, ChunkRecords.read, records[key[1]])
                for key, task in run.layers[join].items()
            }
            layers[join] = TaskLayer(tasks)
            # tasks of signal chunks only need to know which UDFs to run
            records = [
                replace(each, computed=tuple((k, None) for k, _ in each.computed), stored=())
                for each in records
            ]
        values: dict[tuple[int, ...], Any] = {}
        ours, tasks = isinstance(layer, ChunkTasks), {}
        for key, chunk in info.chunks.items():
            if not records[chunk].computed:
                tasks[key] = OutputTask(key, ChunkRecords.read, records[chunk])
            elif ours:
                task = layer[key]
                tasks[key] = type(task)(key, task.func, *task.args, records=records[chunk])
            else:
                values[key[1:]] = records[chunk]
        if ours:
            layers[name] = TaskLayer(tasks)
            continue
        reads.update(tasks)
        indices = (tuple(key[1:]) for key in layer.get_output_keys())
        by_index = PerBlock({index: values.get(index) for index in indices})
        layers[name] = layer.with_argument("records", by_index)


def _add_merges(
    run: Run, lookups: Mapping[int, Lookup], folder: RecordFolder, layers: dict[str, Any]
) -> None:
    """Add the changed layers of merges."""
    for number, lookup in lookups.items():
        name = layer_name(run.recipe, "merge", number)
        if not lookup.merges or name not in run.layers:
            continue
        tasks = dict(run.layers[name])
        for key, task in run.layers[name].items():
            node = lookup.merges[key[1:]]
            if node.action == "compute":
                superfluous = node.superfluous if folder.limit is None else ()
                place = (folder, node.saved, superfluous)
                tasks[key] = OutputTask(key, _merge, place, *task.args)
            elif node.action == "read":
                tasks[key] = OutputTask(key, _load, folder, node.saved, node.first, node.stop)
        layers[name] = TaskLayer(tasks)


def _rebuilt(collection: Any, layers: Mapping[str, Any]) -> Any:
    """Return a collection with some layers of its graph replaced."""
    graph = collection.__dask_graph__()
    if layers.keys().isdisjoint(getattr(graph, "layers", ())):
        return collection
    # a layer that reads records depends on fewer layers than before, which dask finds out itself
    new = {name: layers.get(name, layer) for name, layer in graph.layers.items()}
    rebuild, state = collection.__dask_postpersist__()
    return rebuild(HighLevelGraph(new, graph.dependencies), *state)


def _join(recipe: Recipe, chunk: int, parts: list[Partials], records: ChunkRecords) -> Partials:
    """Join the signal chunks of a chunk, store the result, and read those of other UDFs."""
    return records.run(recipe.now, chunk, None, lambda _: join_parts(recipe, chunk, parts))


@hides_own_lines
def _merge(
    place: tuple[RecordFolder, Saved, tuple[str, ...]],
    recipe: Recipe,
    number: int,
    checked: bool,
    *sources: Any,
) -> Partial:
    """Carry out one merge of a tree, store it, and remove records that nobody needs then."""
    folder, saved, superfluous = place
    partials: list[Any] = [holder_of(source, number) for source in sources]
    merged = merge_partials(recipe.now, number, partials, checked)
    _store(folder, saved, merged, superfluous)
    return merged


@dataclass(frozen=True, slots=True)
class ChunkRecords:
    """What a chunk task computes, stores and reads."""

    folder: RecordFolder
    """Where records are."""
    chunk: int
    """Number of the chunk."""
    n_udfs: int
    """Number of UDFs of the run."""
    computed: tuple[tuple[int, Saved | None], ...]
    """Numbers of the UDFs to run, and where to store their partial results; None for nowhere."""
    stored: tuple[tuple[int, Saved], ...]
    """Numbers of the other UDFs whose partial results are needed, and where they are."""

    def run(
        self,
        recipe: Recipe,
        chunk: int,
        group: Group | None,
        run: Callable[[Group | None], Partials],
    ) -> Partials:
        """Run some UDFs of a group with the function `run`, and read the results of others."""
        numbers = tuple(number for number, _ in self.computed)
        if group is not None:
            group = replace(group, numbers=numbers)
        elif len(numbers) < self.n_udfs:
            group = Group(numbers=numbers, names=(), needs_cuda=False)
        partials = run(group)
        for number, place in self.computed:
            partial = partials[number]
            if place is not None and partial is not None:
                _store(self.folder, place, partial)
        return tuple(b if a is None else a for a, b in zip(partials, self.read(), strict=True))

    def read(self) -> Partials:
        """Return the partial results that are stored, with None for all other UDFs."""
        saved = dict(self.stored)
        return tuple(
            _load(self.folder, saved[k], self.chunk, self.chunk + 1) if k in saved else None
            for k in range(self.n_udfs)
        )


def _store(
    folder: RecordFolder, saved: Saved, partial: Partial, superfluous: Iterable[str] = ()
) -> None:
    """Store a partial result; the task goes on if the disk is full."""
    name = saved.names[-1] if partial.looked_beyond else saved.name
    arrays = {key: to_host(array) for key, array in partial.arrays.items()}
    try:
        folder.put(Record(name, arrays, partial.aux), superfluous)
    except OSError as error:
        message = f"some results could not be kept in {os.fspath(folder)}: {error}"
        warnings.warn(message, UDFWarning, stacklevel=2)


def _load(folder: RecordFolder, saved: Saved, first: int, stop: int) -> Partial:
    """Return a stored partial result over some chunks.

    Raise a DamagedRecordError if its record is missing or damaged.
    """
    record = folder.get(saved.name)
    arrays = dict(record.arrays)
    for name, backend in saved.on_device:
        if name in arrays:  # a merge of merges has no nav rows
            arrays[name] = in_backend(arrays[name], backend)
    return Partial(arrays, first, stop, dict(record.aux))
