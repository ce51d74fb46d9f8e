"""Store partial results and read them, inside of tasks; plain arrays, no dask."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from udfdask.arrays.backends.convert import in_backend, to_host
from udfdask.chunk.partial_result import Partial, Partials
from udfdask.merge.merge import merge_partials
from udfdask.plan.device_groups import Group
from udfdask.plan.recipe import Recipe
from udfdask.records.folder import RecordFolder
from udfdask.records.lookup import Saved
from udfdask.records.record_file import Record
from udfdask.records.writer import WRITER


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
        partials = list(run(self._narrowed(recipe, group)))
        for number, saved in self.stored:
            partials[number] = load(self.folder, saved, chunk, chunk + 1)
        return self.store(recipe, tuple(partials))

    def store(self, recipe: Recipe, partials: Partials) -> Partials:
        """Store the partial results of a chunk; return them."""
        for number, saved in self.computed:
            partial = partials[number]
            if saved is not None and partial is not None:
                store(self.folder, saved, recipe, number, partial)
        return partials

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


@dataclass(frozen=True, slots=True)
class MergeRecords:
    """Where a merge task stores its result."""

    folder: RecordFolder
    """Where records are."""
    saved: Saved
    """Where the merged partial result is stored."""
    superfluous: tuple[str, ...]
    """Names of records that nobody needs when the merge is safe."""

    def merge(
        self, recipe: Recipe, number: int, partials: Sequence[Partial], checked: bool
    ) -> Partial:
        """Merge partial results, and store the result."""
        merged = merge_partials(recipe, number, partials, checked)
        store(self.folder, self.saved, recipe, number, merged, self.superfluous)
        return merged


def store(
    folder: RecordFolder,
    saved: Saved,
    recipe: Recipe,
    number: int,
    partial: Partial,
    superfluous: Iterable[str] = (),
) -> None:
    """Give a partial result to the writer of this process."""
    if partial.looked_beyond and saved.of_run:
        saved = saved.for_run
    # no task writes to these arrays, so they need no copy while they wait
    arrays = {name: to_host(array) for name, array in partial.arrays.items()}
    if saved.split:
        specs = recipe.udfs[number].allocated
        rows = {name: array for name, array in arrays.items() if specs[name].kind == "nav"}
        sums = {name: array for name, array in arrays.items() if name not in rows}
        records = [Record(saved.rows, rows, partial.aux), Record(saved.sums, sums, {})]
    else:
        records = [Record(saved.name, arrays, partial.aux)]
    WRITER.put(folder, records, superfluous)


def load(
    folder: RecordFolder, saved: Saved, first: int, stop: int, *, rows_only: bool = False
) -> Partial:
    """Return a stored partial result over some chunks, or its nav rows.

    Raise a DamagedRecordError if a record is missing or damaged.
    """
    rows = folder.get(saved.rows)
    arrays = dict(rows.arrays)
    if saved.split and not rows_only:
        arrays.update(folder.get(saved.sums).arrays)
    for name, backend in saved.on_device:
        if name in arrays:
            arrays[name] = in_backend(arrays[name], backend)
    return Partial(arrays, first, stop, dict(rows.aux))


def flush(folder: RecordFolder) -> None:
    """Wait until this process has written all records of a folder."""
    WRITER.flush(folder)
