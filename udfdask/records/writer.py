"""Write records in the background, so that tasks do not wait for the disk.

Each process has one writer. A record waits for up to a second: by then, a merge has often made it
superfluous, and one record of the merge is written instead of eight. A record that is waiting when
its process is killed is lost, and its chunk is computed again.

The writer waits for the disk only before it removes records that others replace. Otherwise the
system writes files to the disk within half a minute, and a power failure costs no more than that: a
file that is incomplete after it counts as missing. To wait for each file (fsync) would take 0.5 ms
of CPU, and 0.08 ms without: a chunk of 64 MiB takes 10 ms.

Each record has a file of its own. To write those of a second into one file would save 0.05 ms for
each, but then none of them could be removed or used again alone. On ext4, new files take up to
0.8 ms for some minutes after thousands of files in the same place were deleted.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from udfdask.records.cache import Limits
from udfdask.records.folder import RecordFolder
from udfdask.records.record_file import Record

DELAY = 1.0
"""Longest time in seconds that a record waits before it is written."""
MOST_BYTES = 128 << 20
"""Size of the waiting records in bytes from which tasks wait for the disk."""
_POLL = 0.1
"""Seconds after which the thread looks whether the process is about to end."""


class _Place(NamedTuple):
    """Where a record will be."""

    folder: RecordFolder
    name: str


@dataclass(slots=True, eq=False)
class _Waiting:
    """A record that is not written yet."""

    record: Record
    due: float
    """Time at which it is written at the latest, on the monotonic clock."""
    superfluous: frozenset[str]
    """Names of records to remove when this one is safe, and those that came together with it."""


class Writer:
    """Writes records with a thread that lives as long as records wait."""

    def __init__(self, delay: float = DELAY, most_bytes: int = MOST_BYTES) -> None:
        self._delay = delay
        self._most_bytes = most_bytes
        self.start_again()

    def start_again(self) -> None:
        """Forget all records, in a child process after a fork.

        The child has neither the thread nor what is waiting: the parent writes it. Another thread
        of the parent may have held the lock, which nobody would release here.
        """
        self._changed = threading.Condition()
        self._waiting: dict[_Place, _Waiting] = {}
        self._nbytes = 0  # of records that wait or are being written
        self._flushing = 0
        self._limiting = False
        self._thread: threading.Thread | None = None
        self._limits = Limits()
        self._errors: dict[RecordFolder, Exception] = {}

    def put(
        self, folder: RecordFolder, records: Sequence[Record], superfluous: Iterable[str] = ()
    ) -> None:
        """Store records soon, and then remove those that are superfluous.

        Raises
        ------
        OSError
            If a record of a journal could not be written earlier.
        """
        remove = set(superfluous)
        due = time.monotonic() + self._delay
        with self._changed:
            self._check_journal(folder)
            for name in list(remove):
                dropped = self._waiting.pop(_Place(folder, name), None)
                if dropped is not None:
                    self._nbytes -= dropped.record.nbytes
                    remove |= dropped.superfluous
                    due = min(due, dropped.due)  # otherwise merges of merges would wait for ever
            size = sum(record.nbytes for record in records)
            while self._nbytes and self._nbytes + size > self._most_bytes:
                self._start()
                self._flushing += 1
                self._changed.notify_all()
                self._changed.wait()
                self._flushing -= 1
                self._check_journal(folder)
            for record in records:
                place = _Place(folder, record.name)
                if place in self._waiting:  # computed twice
                    self._nbytes -= self._waiting[place].record.nbytes
                self._waiting[place] = _Waiting(record, due, frozenset(remove))
            self._nbytes += size
            self._start()  # it looks for records that are due by itself: no need to wake it here

    def flush(self, folder: RecordFolder) -> None:
        """Wait until all records are on the disk.

        Raises
        ------
        OSError
            If a record could not be written.
        """
        with self._changed:
            self._flushing += 1
            self._changed.notify_all()
            try:
                while self._nbytes or self._waiting or self._is_busy:
                    self._start()
                    self._changed.wait()
            finally:
                self._flushing -= 1
            self._raise_error(folder)

    @property
    def _is_busy(self) -> bool:
        """Whether the thread may be writing; nobody waits until a cache has been limited."""
        return self._thread is not None and not self._limiting

    def _check_journal(self, folder: RecordFolder) -> None:
        """Raise the error of an earlier record; a run with a cache goes on until it is flushed."""
        if not folder.is_cache:
            self._raise_error(folder)

    def _raise_error(self, folder: RecordFolder) -> None:
        """Raise the error of an earlier record, once."""
        error = self._errors.pop(folder, None)
        if error is not None:
            raise error

    def _start(self) -> None:
        """Start the thread, unless it runs."""
        if self._thread is None:
            # not a daemon: a process that ends normally first writes what waits
            self._thread = threading.Thread(target=self._run, name="udfdask-records", daemon=False)
            self._thread.start()

    def _run(self) -> None:
        """Write records when they are due, until none is left."""
        while True:
            with self._changed:
                self._limiting = False
                while (batch := self._take()) is None:
                    self._changed.wait(_POLL)
                if not batch:
                    self._thread = None
                    self._changed.notify_all()
                    return
            folders = {place.folder for place, _ in batch}
            try:
                self._write(batch)
            except Exception as error:  # noqa: BLE001, who waits for this thread would never know
                with self._changed:
                    self._errors.update(dict.fromkeys(folders, error))
            finally:
                with self._changed:
                    self._nbytes -= sum(waiting.record.nbytes for _, waiting in batch)
                    self._limiting = any(folder.is_cache for folder in folders)
                    self._changed.notify_all()
            for folder in folders:
                ours = [each.record.nbytes for place, each in batch if place.folder == folder]
                self._limits.count(folder, sum(ours), len(ours))

    def _take(self) -> list[tuple[_Place, _Waiting]] | None:
        """Take the records that are due; None if none is due yet, an empty list if none waits."""
        if not self._waiting:
            return []
        now = time.monotonic()
        if self._flushing or not threading.main_thread().is_alive():
            now = float("inf")
        batch = [(place, each) for place, each in self._waiting.items() if each.due <= now]
        for place, _ in batch:
            del self._waiting[place]
        return batch or None

    def _write(self, batch: list[tuple[_Place, _Waiting]]) -> None:
        """Write some records, and remove those that are superfluous then."""
        for folder in {place.folder for place, _ in batch}:
            ours = [waiting for place, waiting in batch if place.folder == folder]
            named = {name for waiting in ours for name in waiting.superfluous}
            superfluous = {name for name in named if folder.has(name)}  # few have been written
            # a merge must be safe before its parts are removed
            merges = [each for each in ours if not superfluous.isdisjoint(each.superfluous)]
            others = [each for each in ours if superfluous.isdisjoint(each.superfluous)]
            try:
                folder.put((waiting.record for waiting in others), flush=False)
                if merges:
                    folder.put((waiting.record for waiting in merges), flush=True)
                    folder.remove(superfluous)
            except OSError as error:
                # after the end of a run, its journal may be removed while a last record waits
                removed = error.errno == errno.ENOENT and not Path(folder.path).is_dir()
                if folder.is_cache or not removed:
                    with self._changed:
                        error.add_note(f"A record could not be written to {folder.path}")
                        self._errors[folder] = error


WRITER = Writer()
"""The writer of this process."""

if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=WRITER.start_again)
