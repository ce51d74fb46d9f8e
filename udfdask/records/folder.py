"""A folder of records: one file for each name."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from udfdask.records.record_file import DamagedRecordError, Record, read_record, write_record
from udfdask.writing.renaming import flush_folder

SUFFIX = ".record"


@dataclass(frozen=True, slots=True)
class RecordFolder:
    """A folder of records; every process that knows its path can read and write."""

    path: str
    """Absolute path of the folder."""
    limit: int | None = None
    """Largest size of all records in bytes; None for a journal, which has no limit.

    This is the difference between a journal and a cache. A journal removes records that a merge
    replaces, and a task fails if a record cannot be written. A cache keeps them until they have not
    been used for the longest time, and goes on without records that cannot be written.
    """

    @property
    def is_cache(self) -> bool:
        """Whether it belongs to a cache, not to a journal."""
        return self.limit is not None

    def file_of(self, name: str) -> Path:
        """Return the path of the file of a record."""
        return Path(self._file_of(name))

    def _file_of(self, name: str) -> str:
        """Return the path of the file of a record as a text, in less than half of the time."""
        return f"{self.path}{os.sep}{name}{SUFFIX}"

    def names(self) -> set[str]:
        """Return the names of all records; whether they are complete is not checked."""
        with os.scandir(self.path) as entries:
            return {
                entry.name.removesuffix(SUFFIX)
                for entry in entries
                if entry.name.endswith(SUFFIX) and not entry.name.startswith(".")
            }

    def put(self, records: Iterable[Record], *, flush: bool = True) -> None:
        """Store records; with `flush`, they are on the disk when this returns."""
        for record in records:
            if self.limit is None or record.nbytes <= self.limit:
                write_record(record, self._file_of(record.name), flush=flush)
        if flush:
            flush_folder(Path(self.path))

    def get(self, name: str) -> Record:
        """Return a record; raise a DamagedRecordError if it is missing or damaged.

        A damaged file is removed, so that the next lookup does not find it.
        """
        try:
            return read_record(name, self.file_of(name))
        except DamagedRecordError:
            with contextlib.suppress(OSError):
                self.remove([name])
            raise

    def use(self, name: str) -> bool:
        """Return whether a record exists; its modification time becomes the time of this use."""
        try:
            os.utime(self._file_of(name))
        except FileNotFoundError:
            return False
        except OSError:  # on a read-only disk
            return self.has(name)
        return True

    def has(self, name: str) -> bool:
        """Return whether a record exists."""
        return os.path.exists(self._file_of(name))  # noqa: PTH110

    def remove(self, names: Iterable[str]) -> None:
        """Remove records; those that do not exist are skipped."""
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._file_of(name))  # noqa: PTH108

    def clean_up(self) -> None:
        """Remove unfinished files of processes that were killed."""
        with contextlib.suppress(FileNotFoundError), os.scandir(self.path) as entries:
            for entry in list(entries):
                if entry.name.startswith("."):
                    Path(entry.path).unlink(missing_ok=True)


class StoredRecords:
    """The records of a folder that a run finds: each name is looked up once, when it is needed.

    A folder may hold many records of other runs, so their names are not listed.
    """

    def __init__(self, folder: RecordFolder) -> None:
        self._folder = folder
        self._known: dict[str, bool] = {}

    def __contains__(self, name: object) -> bool:
        assert isinstance(name, str)
        if name not in self._known:
            self._known[name] = self._folder.use(name)
        return self._known[name]

    def verify(self, names: Iterable[str]) -> bool:
        """Read records; forget those that are damaged, and return whether all are complete."""
        complete = True
        for name in names:
            try:
                self._folder.get(name)
            except DamagedRecordError:
                self._known[name] = complete = False
        return complete
