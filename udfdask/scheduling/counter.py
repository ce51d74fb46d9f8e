"""Find the work of a computation, and count and report what is done of it.

The work is the chunks of data, and the tasks that process them.
"""

from __future__ import annotations

import threading
import uuid
import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from dask.callbacks import Callback

from udfdask.errors import UDFWarning
from udfdask.geometry.chunk_grid import Grid
from udfdask.graph.chunk_layers import (
    ChunkBlockwise,
    ChunkLayerInfo,
    ChunkTasks,
    layers_of_collections,
)
from udfdask.plan.recipe import Recipe
from udfdask.scheduling.progress import ProgressState, Status


@dataclass(frozen=True, slots=True)
class Work:
    """Chunks of data, and the chunk that each task processes."""

    sizes: dict[Hashable, tuple[int, int]]
    """Selected frames, and size in bytes, of each chunk."""
    chunk_of: dict[Hashable, Hashable]
    """The chunk that each task processes; several tasks can process the same chunk."""

    def only(self, tasks: Iterable[Hashable]) -> Work:
        """Return the work of some tasks; tasks that are not in this work are ignored."""
        chunk_of = {key: self.chunk_of[key] for key in tasks if key in self.chunk_of}
        return Work({chunk: self.sizes[chunk] for chunk in chunk_of.values()}, chunk_of)


def work_of_run(recipe: Recipe) -> Work:
    """Return the work of one run; its tasks have the numbers of their chunks as keys."""
    numbers = range(recipe.grid.n_chunks)
    sizes = _sizes(recipe, recipe.grid)
    return Work(dict(zip(numbers, sizes, strict=True)), {number: number for number in numbers})


def work_of(results: Any) -> Work:
    """Return the work of a computation of nested collections.

    A chunk of several runs counts once, with the frames that at least one of them has selected.
    """
    by_data: dict[tuple[str, int], list[ChunkLayerInfo]] = {}
    for layer in layers_of_collections(results).values():
        if isinstance(layer, (ChunkBlockwise, ChunkTasks)):
            info = layer.info
            # two runs with different numbers of scan axes have different frames
            data = (info.array_name, len(info.recipe.grid.shape))
            by_data.setdefault(data, []).append(info)
    work = Work({}, {})
    for (name, _), infos in by_data.items():
        recipe = infos[0].recipe
        rois = [info.recipe.grid.roi for info in infos if info.recipe.grid.roi is not None]
        roi = np.logical_or.reduce(rois) if len(rois) == len(infos) else None
        grid = replace(recipe.grid, roi=roi)
        chunks = [(name, grid.index(chunk)) for chunk in range(grid.n_chunks)]
        work.sizes.update(zip(chunks, _sizes(recipe, grid), strict=True))
        for info in infos:
            index = info.recipe.grid.index
            work.chunk_of.update({key: (name, index(c)) for key, c in info.chunks.items()})
    return work


def _sizes(recipe: Recipe, grid: Grid) -> list[tuple[int, int]]:
    """Return the number of selected frames and the size in bytes of each chunk of a grid."""
    frame = recipe.shape.sig.size * recipe.dtype.itemsize
    nbytes = [frames * frame for frames in grid.loaded.tolist()]
    return list(zip(grid.counts.tolist(), nbytes, strict=True))


class ProgressCounter:
    """Counts the finished tasks of a run; `started` is True when all its tasks are known."""

    def __init__(self, work: Work, reporter: Any) -> None:
        self.started = False
        self._work = work
        self._reporter = reporter
        self._failed = False
        self.id = uuid.uuid4().hex
        self._ended = False
        self._stored: dict[Hashable, bool] = {}
        self._remaining: set[Hashable] = set()
        self._n_tasks: Counter[Hashable] = Counter()
        self._n_done: Counter[Hashable] = Counter()
        self._frames = self._nbytes = self._chunks = 0
        self._totals = (0, 0)

    def __contains__(self, task: Hashable) -> bool:
        return task in self._work.chunk_of

    @property
    def layer_names(self) -> set[str]:
        """Names of the layers with tasks to count."""
        return {key[0] for key in self._work.chunk_of if isinstance(key, tuple)}

    def note_stored(self, tasks: Mapping[Hashable, bool]) -> None:
        """Note tasks whose results are stored: they count as done when the run starts.

        The values tell which of them are done even if the graph does not contain them.
        """
        self._stored = dict(tasks)

    def start(self, tasks: Iterable[Hashable] | None = None) -> None:
        """Start to count some tasks and those that are stored, by default all of the work."""
        if tasks is not None:
            merged = {task for task, is_merged in self._stored.items() if is_merged}
            self._work = self._work.only(merged.union(tasks))
        self._remaining = set(self._work.chunk_of)
        self._n_tasks = Counter(self._work.chunk_of.values())
        sizes = self._work.sizes.values()
        self._totals = (sum(frames for frames, _ in sizes), sum(nbytes for _, nbytes in sizes))
        self._count(self._stored)
        self.started = True
        self._report("start", "running")

    def add(self, tasks: Iterable[Hashable]) -> None:
        """Count tasks as done; each task counts once."""
        if self._count(tasks) and not self._ended:
            self._report("update", "running")

    def end(self, status: Status) -> None:
        """Report the end; if the run has finished, all tasks count as done."""
        if self._ended:
            return
        if status == "finished":
            if not self.started:
                self.start()
            self.add(list(self._remaining))
        self._ended = True
        if self.started:
            self._report("end", status)

    def _count(self, tasks: Iterable[Hashable]) -> bool:
        """Count those tasks that have not been counted; return whether there are any."""
        done = self._remaining.intersection(tasks)
        self._remaining -= done
        for task in done:
            chunk = self._work.chunk_of[task]
            n, before = self._n_tasks[chunk], self._n_done[chunk]
            frames, nbytes = self._work.sizes[chunk]
            # the parts of a chunk add up to the whole
            self._frames += frames * (before + 1) // n - frames * before // n
            self._nbytes += nbytes * (before + 1) // n - nbytes * before // n
            self._chunks += before + 1 == n
            self._n_done[chunk] += 1
        return bool(done)

    def _report(self, event: str, status: Status) -> None:
        """Call the reporter; if it raises an exception, this warns and the run goes on."""
        if self._failed and event == "update":
            return
        state = ProgressState(
            num_frames_complete=self._frames,
            num_frames_total=self._totals[0],
            num_bytes_complete=self._nbytes,
            num_bytes_total=self._totals[1],
            num_part_complete=self._chunks,
            num_part_total=len(self._work.sizes),
            progress_id=self.id,
            status=status,
        )
        try:
            getattr(self._reporter, event, self._reporter)(state)  # a function is told everything
        except Exception as error:  # noqa: BLE001  # no error of a reporter should end a run
            if not self._failed:  # warn only once
                warnings.warn(
                    f"{self._reporter!r}, passed as progress, failed to {event}: "
                    f"{type(error).__name__}: {error}; the run goes on without it",
                    UDFWarning,
                    stacklevel=2,
                )
            self._failed = True


@contextmanager
def reporting_end(counter: ProgressCounter) -> Iterator[None]:
    """Report the end of a run: finished, failed or cancelled."""
    try:
        yield
    except BaseException as error:
        counter.end("failed" if isinstance(error, Exception) else "cancelled")
        raise
    counter.end("finished")


@contextmanager
def counting_local_tasks(counter: ProgressCounter) -> Iterator[None]:
    """Count the tasks of a computation that this thread starts on a scheduler of this machine."""
    this_thread = threading.get_ident()

    def start(dsk: Any) -> None:
        # a task can start a computation in another thread, which has the same callbacks
        is_ours = threading.get_ident() == this_thread and not counter.started
        if is_ours and any(key in counter for key in dsk):
            counter.start(dsk)

    def add(key: Any, *_: Any) -> None:
        if threading.get_ident() == this_thread and counter.started:
            counter.add((key,))

    with Callback(start=start, posttask=add):
        yield
