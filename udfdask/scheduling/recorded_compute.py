"""Compute with a journal or a cache: store partial results, and read those that are stored."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from udfdask import config
from udfdask.errors import ArgumentTypeError, ArgumentValueError, JournalError, UDFWarning
from udfdask.graph.data_identity import DataNames
from udfdask.graph.recorded_graph import (
    Run,
    find_runs,
    is_over_nothing,
    stored_tasks,
    with_records,
)
from udfdask.graph.run_fields import check_storable, fields_of, names_of
from udfdask.records.cache import open_cache
from udfdask.records.folder import RecordFolder, StoredRecords
from udfdask.records.journal import Journal, has_records, open_journal
from udfdask.records.lookup import Lookup, look_up
from udfdask.records.record_file import DamagedRecordError
from udfdask.records.recording import flush

Changing = Callable[[list[Any], Any], tuple[list[Any], dict[Any, bool]]]
"""Takes collections and the client of their cluster, or None.

Returns changed collections, and `stored_tasks` of `graph.recorded_graph`.
"""

Computing = Callable[[Changing | None], tuple[Any, ...]]
"""Returns computed values, of collections that a function changes before."""

Named = tuple[Run, str, list[str]]
"""A run with the names of its data and of its UDFs."""

ATTEMPTS = 3
"""Number of times that a computation starts again because a record was damaged or has vanished."""


@dataclass(frozen=True, slots=True)
class _Strict:
    """A journal: what cannot be stored is an error."""

    journal: Journal

    @property
    def folder(self) -> RecordFolder:
        return self.journal.records

    def named(self, collections: Sequence[Any], names: DataNames) -> list[Named]:
        """Return the names of all runs; raise if the journal is that of other runs."""
        runs = find_runs(collections)
        if not runs and any(map(is_over_nothing, collections)):
            return []
        if not runs:
            raise ArgumentValueError(
                "journal= needs lazy results of run_udf, or arrays made from them, that dask has "
                "neither computed, persisted nor optimized"
            )
        named = [_named(run, names) for run in runs]
        names.check_identity()
        self.journal.check_place(names.statuses)
        self.journal.check([fields_of(run, names, data, udfs) for run, data, udfs in named])
        return named

    def report(self, error: OSError) -> None:
        """Raise the error of a record that could not be written."""
        raise error


@dataclass(frozen=True, slots=True)
class _Lenient:
    """A cache: what cannot be stored is computed each time."""

    folder: RecordFolder

    def named(self, collections: Sequence[Any], names: DataNames) -> list[Named]:
        """Return the names of all runs that have some; warn about others."""
        named = []
        for run in find_runs(collections):
            try:
                named.append(_named(run, names))
            except Exception as error:  # noqa: BLE001  # objects of the user may raise anything
                _warn(f"results of this run are not kept in the cache: {error}")
        names.check_identity()
        return named

    def report(self, error: OSError) -> None:
        """Warn that a record could not be written."""
        _warn(f"some results could not be kept in the cache {self.folder.path}: {error}")


def compute_with_journal(
    compute: Computing, path: str | os.PathLike[str], identity: str | None
) -> tuple[Any, ...]:
    """Return computed values; partial results are stored in a journal."""
    _check_identity(identity)
    with open_journal(path) as journal:
        try:
            return _compute(compute, _Strict(journal), identity)
        except JournalError:
            raise
        except BaseException as error:
            if has_records(path):
                error.add_note(
                    f"partial results are saved in {os.fspath(path)}: the same run, started again, "
                    "goes on from there"
                )
            raise


def compute_with_cache(compute: Computing, path: str, identity: str | None) -> tuple[Any, ...]:
    """Return computed values; partial results are kept in a cache where possible."""
    _check_identity(identity)
    try:
        folder = open_cache(path, config.cache_limit())
    except OSError as error:
        _warn(f"the cache cannot be used: {error}")
        return compute(None)
    return _compute(compute, _Lenient(folder), identity)


def _compute(
    compute: Computing, store: _Strict | _Lenient, identity: str | None
) -> tuple[Any, ...]:
    """Return computed values; start again if a record is damaged or has been removed."""
    clients: list[Any] = []
    named: list[Named] | None = None

    def change(collections: list[Any], client: Any) -> tuple[list[Any], dict[Any, bool]]:
        nonlocal named
        clients.append(client)
        if named is None:
            named = store.named(collections, DataNames(identity))
        lookups = _lookups(named, store.folder, attempt=len(clients))
        return with_records(collections, lookups, store.folder), stored_tasks(lookups)

    while True:
        try:
            values = compute(change)
        except DamagedRecordError:
            if len(clients) > ATTEMPTS:
                raise
        except BaseException:
            with contextlib.suppress(OSError):
                flush(store.folder)
            raise
        else:
            try:
                _flush_all(store.folder, clients[-1])
            except OSError as error:
                store.report(error)
            return values


def name_of_runs(collections: Sequence[Any], identity: str | None, more: Any) -> str:
    """Return a name of the runs in collections, the same in every process; empty without runs.

    `more` is what else the name depends on.
    """
    _check_identity(identity)
    names = DataNames(identity)
    named = [_named(run, names) for run in find_runs(collections)]
    fields = [fields_of(run, names, data, udfs) for run, data, udfs in named]
    return names.of_value((fields, more)) if fields else ""


def _check_identity(identity: Any) -> None:
    """Raise unless the name that the user gives to data is a text."""
    if identity is not None and not (isinstance(identity, str) and identity):
        raise ArgumentTypeError(f"identity must be a text that is not empty, not {identity!r}")


def _warn(message: str) -> None:
    warnings.warn(message, UDFWarning, stacklevel=2)


def _named(run: Run, names: DataNames) -> Named:
    """Return the names of a run; raise if its partial results cannot be stored."""
    check_storable(run.recipe)
    return run, *names_of(run, names)


def _lookups(
    named: Sequence[Named], folder: RecordFolder, attempt: int
) -> list[tuple[Run, Mapping[int, Lookup]]]:
    """Return what runs read and what they compute.

    Records are read when they are needed. After a failure, all are read before. The last attempt
    reads none, because other processes may remove records all the time.
    """
    if attempt > ATTEMPTS:
        return [(run, _lookups_of(run, data, udfs, ())) for run, data, udfs in named]
    stored = StoredRecords(folder)
    while True:
        lookups = [(run, _lookups_of(run, data, udfs, stored)) for run, data, udfs in named]
        read = [name for _, by_udf in lookups for lookup in by_udf.values() for name in lookup.read]
        if attempt == 1 or stored.verify(read):
            return lookups


def _lookups_of(
    run: Run, data: str, udfs: Sequence[str], stored: Container[str]
) -> Mapping[int, Lookup]:
    """Return the lookups of the UDFs of a run that are needed."""
    lookups = {}
    for number, udf in enumerate(udfs):
        if run.needs(number):
            lookups[number] = look_up(run.recipe, number, data, udf)
            lookups[number].decide(stored)
    return lookups


def _flush_all(folder: RecordFolder, client: Any) -> None:
    """Wait until all processes have written their records.

    Processes of a pool that the user keeps write them within a second by themselves.
    """
    flush(folder)
    if client is not None:
        for error in client.run(flush, folder, on_error="return").values():
            if isinstance(error, OSError) and error.errno is not None:
                raise error
