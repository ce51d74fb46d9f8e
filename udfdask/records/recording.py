"""Store partial results and read them, inside of tasks; plain arrays, no dask."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from udfdask.backends.table import in_backend, to_host
from udfdask.chunk.partial_result import Partial, Partials
from udfdask.plan.device_groups import Group
from udfdask.plan.recipe import Recipe
from udfdask.records.folder import RecordFolder
from udfdask.records.lookup import Saved
from udfdask.records.record_file import Record

_failures: dict[str, OSError] = {}
"""The last error of this process in each folder: a run goes on without records."""


@dataclass(frozen=True, slots=True)
class ChunkRecords:
    """What a chunk task computes, stores and reads."""

    folder: RecordFolder
    """Where records are."""
    computed: tuple[tuple[int, Saved | None], ...]
    """Numbers of the UDFs to run, and where to store their partial results; None for nowhere."""
    stored: tuple[tuple[int, Saved], ...] = ()
    """Numbers of the other UDFs whose partial results are needed, and where they are."""

    def run(
        self,
        recipe: Recipe,
        chunk: int,
        group: Group | None,
        run: Callable[[Group | None], Partials],
    ) -> Partials:
        """Run some UDFs of a group with the function `run`, and read the results of others."""
        partials = run(self._narrowed(recipe, group))
        for number, place in self.computed:
            partial = partials[number]
            if place is not None and partial is not None:
                store(self.folder, place, partial)
        stored = self.read(len(partials), chunk)
        return tuple(b if a is None else a for a, b in zip(partials, stored, strict=True))

    def read(self, n_udfs: int, chunk: int) -> Partials:
        """Return the partial results that are stored, with None for all other UDFs."""
        partials: list[Partial | None] = [None] * n_udfs
        for number, saved in self.stored:
            partials[number] = load(self.folder, saved, chunk, chunk + 1)
        return tuple(partials)

    def _narrowed(self, recipe: Recipe, group: Group | None) -> Group | None:
        """Return the group of the UDFs to run; None for all."""
        numbers = tuple(number for number, _ in self.computed)
        if group is None:
            if len(numbers) == len(recipe.udfs):
                return None
            group = Group(numbers=numbers, names=(), needs_cuda=False)
        return replace(group, numbers=numbers)


def store(
    folder: RecordFolder, saved: Saved, partial: Partial, superfluous: Iterable[str] = ()
) -> None:
    """Store a partial result; the task goes on if the disk is full."""
    name = saved.names[-1] if partial.looked_beyond else saved.name
    arrays = {key: to_host(array) for key, array in partial.arrays.items()}
    try:
        folder.put(Record(name, arrays, partial.aux), superfluous)
    except OSError as error:
        _failures[folder.path] = error


def load(folder: RecordFolder, saved: Saved, first: int, stop: int) -> Partial:
    """Return a stored partial result over some chunks.

    Raise a DamagedRecordError if its record is missing or damaged.
    """
    record = folder.get(saved.name)
    arrays = dict(record.arrays)
    for name, backend in saved.on_device:
        if name in arrays:  # a merge of merges has no nav rows
            arrays[name] = in_backend(arrays[name], backend)
    return Partial(arrays, first, stop, dict(record.aux))


def take_failure(path: str) -> OSError | None:
    """Return an error with which this process could not write to a folder, once."""
    return _failures.pop(path, None)
