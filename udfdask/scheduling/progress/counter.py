"""Find the work of a computation, and count and report what is done of it.

The work is the chunks of data, and the tasks that process them.
"""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from dask import base
from dask.callbacks import Callback

from udfdask.geometry.chunk_grid import Grid
from udfdask.graph.chunk_layers import ChunkBlockwise, ChunkLayerInfo, ChunkTasks
from udfdask.plan.recipe import Recipe
from udfdask.scheduling.progress.state import ProgressReporter, ProgressState, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Chunks of data, and the chunk that each task processes."""

    frames: dict[Hashable, int]
    """Selected frames of each chunk."""
    nbytes: dict[Hashable, int]
    """Size of each chunk in bytes."""
    chunk_of: dict[Hashable, Hashable]
    """The chunk that each task processes; several tasks can process the same chunk."""

    def only(self, tasks: Iterable[Hashable]) -> Work:
        """Return the work of some tasks; tasks that are not in this work are ignored."""
        chunk_of = {key: self.chunk_of[key] for key in tasks if key in self.chunk_of}
        chunks = set(chunk_of.values())
        return Work(
            frames={chunk: n for chunk, n in self.frames.items() if chunk in chunks},
            nbytes={chunk: n for chunk, n in self.nbytes.items() if chunk in chunks},
            chunk_of=chunk_of,
        )


def work_of_run(recipe: Recipe) -> Work:
    """Return the work of one run; its tasks have the numbers of their chunks as keys."""
    numbers: list[Hashable] = list(range(recipe.grid.n_chunks))
    frames, nbytes = _sizes(recipe, recipe.grid)
    return Work(
        frames=dict(zip(numbers, frames, strict=True)),
        nbytes=dict(zip(numbers, nbytes, strict=True)),
        chunk_of={number: number for number in numbers},
    )


def work_of(results: Any) -> Work:
    """Return the work of a computation of nested collections.

    A chunk of several runs counts once, with the frames that at least one of them has selected.
    """
    work = Work(frames={}, nbytes={}, chunk_of={})
    for (array_name, _), visits in _visits(results).items():
        recipe, grid = visits[0].recipe, _joint_grid([v.recipe.grid for v in visits])
        chunks = [(array_name, grid.index(chunk)) for chunk in range(grid.n_chunks)]
        frames, nbytes = _sizes(recipe, grid)
        work.frames.update(zip(chunks, frames, strict=True))
        work.nbytes.update(zip(chunks, nbytes, strict=True))
        for visit in visits:
            index = visit.recipe.grid.index
            work.chunk_of.update({k: (array_name, index(c)) for k, c in visit.chunks.items()})
    return work


def _visits(results: Any) -> dict[tuple[str, int], list[ChunkLayerInfo]]:
    """Return the visits of all layers in graphs, by array and number of scan axes."""
    collections, _ = base.unpack_collections(results)
    layers: dict[str, Any] = {}
    for collection in collections:
        layers.update(getattr(collection.__dask_graph__(), "layers", {}))
    by_data: dict[tuple[str, int], list[ChunkLayerInfo]] = {}
    for layer in layers.values():
        if isinstance(layer, (ChunkBlockwise, ChunkTasks)):
            visits = layer.info
            # two runs with different numbers of scan axes have different frames
            data = (visits.array_name, len(visits.recipe.grid.shape))
            by_data.setdefault(data, []).append(visits)
    return by_data


def _joint_grid(grids: list[Grid]) -> Grid:
    """Return the grid of all frames that at least one of some grids of the same data selects."""
    rois = [grid.roi for grid in grids if grid.roi is not None]
    if len(rois) < len(grids):
        return replace(grids[0], roi=None)
    return replace(grids[0], roi=np.logical_or.reduce(rois))


def _sizes(recipe: Recipe, grid: Grid) -> tuple[list[int], list[int]]:
    """Return the number of selected frames and the size in bytes of each chunk of a grid."""
    frame = recipe.shape.sig.size * recipe.dtype.itemsize
    nbytes = [frames * frame for frames in grid.loaded.tolist()]
    return grid.counts.tolist(), nbytes


class ProgressCounter:
    """Counts the finished tasks of a run; `started` is True when all its tasks are known."""

    def __init__(self, work: Work, reporter: ProgressReporter) -> None:
        self.started = False
        self._work = work
        self._reporter = reporter
        self.id = uuid.uuid4().hex
        self._ended = False
        self._stored: dict[Hashable, bool] = {}
        self._remaining: set[Hashable] = set()
        self._n_tasks: Counter[Hashable] = Counter()
        self._n_remaining: Counter[Hashable] = Counter()
        # exact numbers, because three thirds of a frame must add up to one frame
        self._frames = self._nbytes = Fraction(0)
        self._total_frames = self._total_nbytes = 0
        self._chunks = 0

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
        self._n_remaining = self._n_tasks.copy()
        self._total_frames = sum(self._work.frames.values())
        self._total_nbytes = sum(self._work.nbytes.values())
        self._count(self._stored)
        self.started = True
        self._reporter.start(self._state("running"))

    def add(self, tasks: Iterable[Hashable]) -> None:
        """Count tasks as done; each task counts once."""
        if self._count(tasks) and not self._ended:
            self._reporter.update(self._state("running"))

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
            self._reporter.end(self._state(status))

    def _count(self, tasks: Iterable[Hashable]) -> bool:
        """Count those tasks that have not been counted; return whether there are any."""
        done = self._remaining.intersection(tasks)
        self._remaining -= done
        for task in done:
            chunk = self._work.chunk_of[task]
            part = Fraction(1, self._n_tasks[chunk])
            self._frames += self._work.frames[chunk] * part
            self._nbytes += self._work.nbytes[chunk] * part
            self._n_remaining[chunk] -= 1
            self._chunks += not self._n_remaining[chunk]
        return bool(done)

    def _state(self, status: Status) -> ProgressState:
        """Return the state of the run."""
        return ProgressState(
            num_frames_complete=int(self._frames),
            num_frames_total=self._total_frames,
            num_bytes_complete=int(self._nbytes),
            num_bytes_total=self._total_nbytes,
            num_part_complete=self._chunks,
            num_part_total=len(self._work.frames),
            progress_id=self.id,
            status=status,
        )


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
