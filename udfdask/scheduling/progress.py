"""Progress of a computation: chunks of data and their tasks, a count, and those who are told."""

from __future__ import annotations

import threading
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
from dask.callbacks import Callback
from dask.utils import format_bytes

from udfdask.errors import ArgumentTypeError, UDFRunCancelled, UDFWarning
from udfdask.geometry.chunk_grid import Grid
from udfdask.graph.chunk_layers import ChunkLayerInfo, find_chunk_layers
from udfdask.plan.recipe import Recipe

Status = Literal["running", "finished", "failed", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressState:
    """The progress of a run.

    The numbers have the names of LiberTEM's class. If several UDFs or runs of one computation
    process the same frame, the frame counts once, when the last of them has finished its chunk.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import SumUDF
    >>> x = da.ones((4, 3, 2, 2), chunks=(2, 3, 2, 2))
    >>> def show(state):
    ...     print(state.num_frames_complete, state.num_frames_total, state.status)
    >>> _ = ud.run_udf(x, SumUDF()).compute(progress=show, scheduler="synchronous")
    0 12 running
    6 12 running
    12 12 running
    12 12 finished
    """

    num_frames_complete: int
    """Frames that have been processed."""
    num_frames_total: int
    """Frames to process: those of the region of interest."""
    num_bytes_complete: int
    """Size of the chunks that have been processed, in bytes."""
    num_bytes_total: int
    """Size of all chunks to process in bytes, as blocks of the dask array."""
    num_part_complete: int
    """Chunks that have been processed."""
    num_part_total: int
    """Chunks to process."""
    progress_id: str
    """Identifier of the run."""
    status: Status
    """"running"; at the end "finished", "failed", or "cancelled" (Ctrl-C)."""


class ProgressReporter(Protocol):
    """The interface of objects that receive the progress of a run, for ``progress=``.

    Any object with these methods is accepted; it does not have to inherit from this class. The
    methods are called in the thread that waits for the run. If one of them raises an exception,
    there is a `UDFWarning`, the run goes on, and `update` is not called again.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import SumUDF
    >>> class Log:
    ...     def start(self, state):
    ...         print("to do:", state.num_frames_total, "frames,", state.num_bytes_total, "bytes")
    ...     def update(self, state):
    ...         pass
    ...     def end(self, state):
    ...         print(state.status)
    >>> x = da.ones((4, 3, 2, 2), chunks=(2, 3, 2, 2))
    >>> _ = ud.compute(ud.run_udf(x, SumUDF()), progress=Log())
    to do: 12 frames, 384 bytes
    finished
    """

    def start(self, state: ProgressState) -> None:
        """Receive the totals when a run starts, and what a cluster or a cache already has.

        Parameters
        ----------
        state : ProgressState
            The state of the run.
        """

    def update(self, state: ProgressState) -> None:
        """Receive the progress after one or more chunks.

        Parameters
        ----------
        state : ProgressState
            The state of the run.
        """

    def end(self, state: ProgressState) -> None:
        """Receive the end of the run; called once for each `start`, also after errors.

        Parameters
        ----------
        state : ProgressState
            Its `status` tells how the run has ended.
        """


Progress: TypeAlias = bool | ProgressReporter | Callable[[ProgressState], object] | None
"""Possible values of ``progress=``."""


def choose_reporter(progress: Any) -> Any:
    """Return the function or reporter that the user asks for; None for none."""
    if progress is None or isinstance(progress, bool | np.bool_):
        return Bar() if progress else None
    methods = ("start", "update", "end")
    has_methods = all(callable(getattr(progress, name, None)) for name in methods)
    if (callable(progress) or has_methods) and not isinstance(progress, type):
        return progress
    raise ArgumentTypeError(
        "progress must be True for a bar, False for none, a function of a ProgressState, or an "
        f"object with the methods start, update and end; got {progress!r}"
    )


class Bar:
    """Shows frames, bytes and their rates with tqdm on standard error."""

    _bar: Any = None
    _start_nbytes = 0

    def start(self, state: ProgressState) -> None:
        """Show the bar, if there are frames to count."""
        # `tqdm.auto` imports asyncio, and warns in a notebook without ipywidgets
        if find_spec("ipywidgets") is None:
            from tqdm import tqdm as bar
        else:
            from tqdm.auto import tqdm as bar
        if state.num_frames_total:
            done, total = state.num_frames_complete, state.num_frames_total
            self._start_nbytes = state.num_bytes_complete
            self._bar = bar(total=total, initial=done, unit="frame", unit_scale=True)

    def update(self, state: ProgressState) -> None:
        """Show a state; tqdm writes at most every 0.1 s."""
        if self._bar is not None:
            elapsed = max(self._bar.format_dict["elapsed"], 1e-3)
            rate = format_bytes(int((state.num_bytes_complete - self._start_nbytes) / elapsed))
            done, total = map(format_bytes, (state.num_bytes_complete, state.num_bytes_total))
            self._bar.set_postfix_str(f"{done} of {total}, {rate}/s", refresh=False)
            self._bar.update(state.num_frames_complete - self._bar.n)

    def end(self, state: ProgressState) -> None:
        """Show the last state and close the bar."""
        self.update(state)
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class Work(NamedTuple):
    """What a computation processes."""

    udfs: tuple[str, ...]
    """Names of the classes of UDFs, each once."""
    sizes: dict[Hashable, tuple[int, int]]
    """Selected frames and bytes of each chunk."""
    chunk_of: dict[Hashable, Hashable]
    """The chunk of each task, which several can share."""


def work_of(results: Any) -> Work:
    """Return the work of nested collections; a chunk of several runs counts once."""
    by_data: dict[tuple[str, int], list[ChunkLayerInfo]] = {}
    udfs: dict[str, None] = {}
    for layer in find_chunk_layers(results).values():
        info = layer.info
        udfs.update((info.recipe.udfs[number].name, None) for number in info.numbers)
        # two runs with different numbers of scan axes have different frames
        by_data.setdefault((info.array_name, len(info.recipe.grid.shape)), []).append(info)
    sizes: dict[Hashable, tuple[int, int]] = {}
    chunk_of: dict[Hashable, Hashable] = {}
    for (name, _), infos in by_data.items():
        recipe = infos[0].recipe
        rois = [info.recipe.grid.roi for info in infos if info.recipe.grid.roi is not None]
        roi = np.logical_or.reduce(rois) if len(rois) == len(infos) else None
        grid = replace(recipe.grid, roi=roi)
        chunks = [(name, grid.index(chunk)) for chunk in range(grid.n_chunks)]
        sizes.update(zip(chunks, _sizes(recipe, grid), strict=True))
        for info in infos:
            index = info.recipe.grid.index
            chunk_of.update({key: (name, index(c)) for key, c in info.chunks.items()})
    return Work(tuple(udfs), sizes, chunk_of)


def work_of_recipe(recipe: Recipe) -> Work:
    """Return the work of one run, without its tasks."""
    udfs = dict.fromkeys(udf.name for udf in recipe.udfs)
    return Work(tuple(udfs), dict(enumerate(_sizes(recipe, recipe.grid))), {})


def _sizes(recipe: Recipe, grid: Grid) -> list[tuple[int, int]]:
    """Return the number of selected frames and the size in bytes of each chunk of a grid."""
    frame = recipe.shape.sig.size * recipe.dtype.itemsize
    nbytes = [frames * frame for frames in grid.loaded.tolist()]
    return list(zip(grid.counts.tolist(), nbytes, strict=True))


class ProgressCounter:
    """Counts the finished tasks of a run; `started` is True when all its tasks are known."""

    def __init__(self, work: Work, reporter: Any) -> None:
        self.id = uuid.uuid4().hex
        self.started = False
        self.status: Status = "running"
        self._failed = False
        self._reporter = reporter
        self._sizes, self._chunk_of = work.sizes, work.chunk_of
        self.stored: Mapping[Hashable, bool] = {}
        """Tasks whose results are stored; True for those that need not be in the graph."""
        self._remaining: set[Hashable] = set()
        self._n_left: Counter[Hashable] = Counter()
        self._frames = self._nbytes = self._chunks = 0
        self._totals = [0, 0]

    def __contains__(self, task: Hashable) -> bool:
        return task in self._chunk_of

    @property
    def layer_names(self) -> set[str]:
        """Names of the layers with tasks to count."""
        return {key[0] for key in self._chunk_of if isinstance(key, tuple)}

    def start(self, tasks: Iterable[Hashable] | None = None) -> None:
        """Start to count some tasks and those that are stored, by default all of the work."""
        if tasks is not None:
            ours = {task for task, is_merged in self.stored.items() if is_merged}.union(tasks)
            self._chunk_of = {task: c for task, c in self._chunk_of.items() if task in ours}
            self._sizes = {chunk: self._sizes[chunk] for chunk in self._chunk_of.values()}
        self._remaining = set(self._chunk_of)
        self._n_left = Counter(self._chunk_of.values())
        self._totals = [sum(each) for each in zip(*self._sizes.values(), strict=True)] or [0, 0]
        self._count(self.stored)
        self.started = True
        self._report("start", "running")

    def add(self, tasks: Iterable[Hashable]) -> None:
        """Count tasks as done; each task counts once."""
        if self._count(tasks) and self.status == "running":
            self._report("update", "running")

    def _count(self, tasks: Iterable[Hashable]) -> bool:
        """Count those tasks that have not been counted; return whether there are any."""
        done = self._remaining.intersection(tasks)
        self._remaining -= done
        for task in done:
            chunk = self._chunk_of[task]
            self._n_left[chunk] -= 1
            if not self._n_left[chunk]:
                frames, nbytes = self._sizes[chunk]
                self._frames += frames
                self._nbytes += nbytes
                self._chunks += 1
        return bool(done)

    def end(self, status: Status) -> None:
        """Report the end; if the run has finished, all tasks count as done."""
        if self.status != "running":
            return
        if status == "finished":
            if not self.started:
                self.start()
            self.add(list(self._remaining))
        self.status = status
        if self.started:
            self._report("end", status)

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
            num_part_total=len(self._sizes),
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


def status_after(error: BaseException | None) -> Status:
    """Return how a run ended that raised an error, or none."""
    if error is None:
        return "finished"
    is_failure = isinstance(error, Exception) and not isinstance(error, UDFRunCancelled)
    return "failed" if is_failure else "cancelled"


@contextmanager
def reporting_end(counter: ProgressCounter) -> Iterator[None]:
    """Report the end of a run: finished, failed or cancelled."""
    try:
        yield
    except BaseException as error:
        counter.end(status_after(error))
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

    with Callback(start=start, posttask=add), reporting_end(counter):
        yield
