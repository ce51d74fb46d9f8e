"""Keeps count of the work that is done, and tells whoever wants to know."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

from dask.callbacks import Callback

from udfdask.scheduling.progress.state import ProgressReporter, ProgressState, Status
from udfdask.scheduling.progress.work import Work


class Tally:
    """The count of a run; `started` once somebody has said which tasks there are."""

    def __init__(self, work: Work, reporter: ProgressReporter) -> None:
        self.started = False
        self._work = work
        self._reporter = reporter
        self.id = uuid.uuid4().hex
        self._over = False
        self._todo: set[Hashable] = set()
        self._tasks_of: Counter[Hashable] = Counter()
        self._left_of: Counter[Hashable] = Counter()
        # exact, or thirds of a frame would not add up to it
        self._frames = self._nbytes = Fraction(0)
        self._all_frames = self._all_nbytes = 0
        self._chunks = 0

    def __contains__(self, task: Hashable) -> bool:
        return task in self._work.chunk_of

    @property
    def layer_names(self) -> set[str]:
        """Names of the layers of the tasks that count."""
        return {key[0] for key in self._work.chunk_of if isinstance(key, tuple)}

    def start(self, tasks: Iterable[Hashable] | None = None) -> None:
        """Begin; of all work only that of these tasks is to be done."""
        if tasks is not None:
            self._work = self._work.only(tasks)
        self._todo = set(self._work.chunk_of)
        self._tasks_of = Counter(self._work.chunk_of.values())
        self._left_of = self._tasks_of.copy()
        self._all_frames = sum(self._work.frames.values())
        self._all_nbytes = sum(self._work.nbytes.values())
        self.started = True
        self._reporter.start(self._state("running"))

    def add(self, tasks: Iterable[Hashable]) -> None:
        """Count tasks as done, each once."""
        before = len(self._todo)
        for task in tasks:
            if task in self._todo:
                self._todo.remove(task)
                self._count(self._work.chunk_of[task])
        if len(self._todo) < before and not self._over:
            self._reporter.update(self._state("running"))

    def end(self, status: Status) -> None:
        """End; of a run that has finished everything is done, whoever has seen it or not."""
        if self._over:
            return
        if status == "finished":
            if not self.started:
                self.start()
            self.add(list(self._todo))
        self._over = True
        if self.started:
            self._reporter.end(self._state(status))

    def _count(self, chunk: Hashable) -> None:
        """Count one task of a chunk."""
        part = Fraction(1, self._tasks_of[chunk])
        self._frames += self._work.frames[chunk] * part
        self._nbytes += self._work.nbytes[chunk] * part
        self._left_of[chunk] -= 1
        self._chunks += not self._left_of[chunk]

    def _state(self, status: Status) -> ProgressState:
        """Return how far the run has come."""
        return ProgressState(
            num_frames_complete=int(self._frames),
            num_frames_total=self._all_frames,
            num_bytes_complete=int(self._nbytes),
            num_bytes_total=self._all_nbytes,
            num_part_complete=self._chunks,
            num_part_total=len(self._work.frames),
            progress_id=self.id,
            status=status,
        )


@contextmanager
def ended(tally: Tally) -> Iterator[None]:
    """End a tally as its run ends."""
    try:
        yield
    except BaseException as error:
        tally.end("failed" if isinstance(error, Exception) else "cancelled")
        raise
    tally.end("finished")


@contextmanager
def counted_here(tally: Tally) -> Iterator[None]:
    """Count the tasks that schedulers finish meanwhile, those started by this thread."""
    me = threading.get_ident()

    def begin(dsk: Any) -> None:
        # a task may compute something of its own, with a scheduler that calls back here too
        if threading.get_ident() == me and not tally.started and any(key in tally for key in dsk):
            tally.start(dsk)

    def note(key: Any, *_: Any) -> None:
        if threading.get_ident() == me and tally.started:
            tally.add((key,))

    with Callback(start=begin, posttask=note):
        yield
