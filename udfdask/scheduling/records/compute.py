"""Compute with a cache: store partial results, and read those that are stored."""

from __future__ import annotations

import contextlib
import logging
import os
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from udfdask.base.config import cache_limit
from udfdask.errors import UDFWarning
from udfdask.scheduling.records.data_names import DataNames
from udfdask.scheduling.records.folder import (
    DamagedRecordError,
    RecordFolder,
    check_folder,
    open_folder,
)
from udfdask.scheduling.records.graphs import with_records
from udfdask.scheduling.records.runs import Run, find_runs, look_up, names_of

LOG = logging.getLogger("udfdask")

Changing = Callable[[list[Any]], tuple[list[Any], dict[Any, bool]]]
"""Takes collections; returns what `with_records` does."""

Computing = Callable[[Changing | None], tuple[Any, ...]]
"""Returns computed values, of collections that a function changes before."""

_Named = tuple[Run, str, list[str]]
"""A run, and the names of its data and UDFs."""

ATTEMPTS = 3
"""Number of times that a computation starts again because a record was damaged or has vanished."""


def compute_with_cache(compute: Computing, cache: str | os.PathLike[str]) -> tuple[Any, ...]:
    """Return computed values; partial results are kept in a folder where possible."""
    if isinstance(cache, RecordFolder):
        folder = cache
    else:
        path = check_folder(cache)
        try:
            folder = open_folder(path, cache_limit())
        except OSError as error:
            _warn(f"the cache cannot be used: {error}")
            return compute(None)
    named: list[_Named] = []
    try:
        for attempt in range(ATTEMPTS):
            with contextlib.suppress(DamagedRecordError):
                return compute(partial(_changed, folder, named, attempt))
        # this attempt reads no record: other processes may remove records all the time
        return compute(partial(_changed, folder, named, ATTEMPTS))
    except BaseException as error:
        if folder.limit is None and not folder.is_empty():
            error.add_note(
                f"partial results are saved in {os.fspath(folder)}: the same run, started again, "
                "goes on from there"
            )
        raise


def _changed(
    folder: RecordFolder, named: list[_Named], attempt: int, collections: list[Any]
) -> tuple[list[Any], dict[Any, bool]]:
    """Return what `with_records` does; the first attempt fills `named`."""
    if not attempt:
        named[:] = _named(find_runs(collections))
    known: dict[str, bool] = {}

    def stored(name: str) -> bool:  # a folder has records of other runs: it is not listed
        if name not in known:
            known[name] = attempt < ATTEMPTS and folder.use(name)
        return known[name]

    lookups = []
    for run, data, udfs in named:
        needed = filter(run.needs, range(len(udfs)))
        by_udf = {k: look_up(run.recipe, k, data, udfs[k], stored) for k in needed}
        lookups.append((run, by_udf))
    is_resumed = folder.limit is None and not attempt
    if is_resumed and lookups and not any(known.values()) and not folder.is_empty():
        _warn(
            f"{os.fspath(folder)} has partial results of another run only: other "
            "data, UDFs, parameters, code, chunks or versions. All chunks are computed"
        )
    LOG.info("%d partial results are in %s", sum(known.values()), os.fspath(folder))
    return with_records(collections, lookups, folder) if lookups else (collections, {})


def _named(runs: Sequence[Run]) -> list[_Named]:
    """Return the runs that have names; warn about the others."""
    names = DataNames()
    named = []
    for run in runs:
        try:
            named.append((run, *names_of(run, names)))
        except Exception as error:  # noqa: BLE001  # objects of the user may raise anything
            _warn(f"results of this run are not kept: {error}")
    return named


def _warn(message: str) -> None:
    warnings.warn(message, UDFWarning, stacklevel=2)
