"""The iterator over the snapshots of a run."""

from __future__ import annotations

import contextlib
import sys
import threading
import weakref
from collections.abc import (
    AsyncIterator,
    Callable,
    Generator,
    Hashable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np

from udfdask.chunk.partial_result import common_generation
from udfdask.errors import ArgumentValueError, UDFError, UDFRunCancelled
from udfdask.results.named_results import ResultInfo
from udfdask.run.progressive.accumulate import AuxRows, make_accumulator
from udfdask.run.progressive.chunk_source import Chunks, Closed
from udfdask.run.progressive.live_recipe import LiveRecipe
from udfdask.run.progressive.snapshot import RunState, Snapshot
from udfdask.scheduling.counter import ProgressCounter
from udfdask.scheduling.progress import Status
from udfdask.tracebacks import own_lines_hidden

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressiveRun:
    """A run that is ready to start, before its snapshots are labeled."""

    live: LiveRecipe
    """The recipe, with parameters that may change."""
    infos: tuple[ResultInfo, ...]
    """Metadata of the result of each UDF."""
    aux_values: list[dict[str, Any]]
    """For each UDF the aux data that are known for all frames, shape (*nav, *extra_shape)."""
    start: Callable[[], Chunks]
    """Returns the source of computed chunks; called when the first snapshot is requested."""
    tally: ProgressCounter | None
    """Counts the chunks as they are merged."""
    watch: Callable[[Snapshot], object] | None
    """Called with each snapshot before it is handed out, in the thread that iterates."""
    names: tuple[Hashable, ...] = ()
    """Names of the UDFs, if they came in a dictionary."""


class SnapshotIterator(Iterator[T], AsyncIterator[T]):
    """Iterates over the snapshots of a run, each one labeled by a function.

    Parameters
    ----------
    run : ProgressiveRun
        The planned run.
    label : callable
        Takes a `Snapshot`; returns the object that the iterator yields.
    """

    n_merged: int
    """Number of chunks that have been merged."""

    def __init__(self, run: ProgressiveRun, label: Callable[[Snapshot], T]) -> None:
        recipe = run.live.now
        grid = recipe.grid
        self.n_merged = 0
        self._run = run
        self._label = label
        self._chunks: Chunks | None = None
        self._accumulators = [
            make_accumulator(recipe, number) for number in range(len(recipe.udfs))
        ]
        self._aux = tuple(AuxRows(recipe, k, known) for k, known in enumerate(run.aux_values))
        self._rows_merged = np.zeros(grid.n_frames, dtype=bool)
        self._merged_at = np.full(grid.n_chunks, grid.n_chunks, dtype=np.int64)
        self._generations = np.zeros(grid.n_chunks, dtype=np.int64)
        self._lock = threading.Lock()
        self._finished = False
        self._reader: Any = None
        self._closer: Any = None

    @property
    def n_chunks(self) -> int:
        """Number of chunks of the run."""
        return len(self._merged_at)

    def __repr__(self) -> str:
        names = ", ".join(info.udf_name for info in self._run.infos)
        return f"<{type(self).__name__} of {names}: {self.n_merged} of {self.n_chunks} chunks>"

    def update_parameters(
        self, changes: Sequence[Mapping[str, Any]] | Mapping[str, Mapping[str, Any]]
    ) -> None:
        """Change parameters for all chunks that start later, and for all later merges.

        On a cluster, at most two chunks for each thread have been sent and keep the old ones.
        `Snapshot.generations` says which parameters each position was processed with.

        Parameters
        ----------
        changes : sequence of dict, or dict of dict
            One dictionary of new values by name for each UDF; ``{}`` for a UDF without changes. If
            the UDFs came in a dictionary, also a dictionary with the names of the UDFs to change.

        Raises
        ------
        ArgumentValueError
            If a parameter or the name of a UDF is unknown, or the declaration of the UDF would
            change. Then no parameter changes.
        ArgumentTypeError
            If `changes` is not a sequence of dictionaries, or a value is a dask collection.

        Examples
        --------
        >>> import dask.array as da, udfdask as ud
        >>> from udfdask.udfs import VirtualDetectorUDF
        >>> x = da.ones((6, 1, 9, 9), chunks=(1, 1, 9, 9))
        >>> snapshots = ud.run_udf_iter(x, VirtualDetectorUDF(r=1), scheduler="synchronous")
        >>> for snapshot in snapshots:
        ...     snapshots.update_parameters([{"r": 2}])
        >>> snapshot.buffers[0]["intensity"][0, 0] < snapshot.buffers[0]["intensity"][-1, 0]
        np.True_
        """
        names = self._run.names
        if names and isinstance(changes, Mapping):
            unknown = [name for name in changes if name not in names]
            if unknown:
                raise ArgumentValueError(
                    f"no UDF of the run is called {unknown[0]!r}; there are {list(names)}"
                )
            changes = [changes.get(name, {}) for name in names]  # type: ignore[call-overload]
        self._run.live.update(changes)

    update_parameters_experimental = update_parameters
    """The name in LiberTEM."""

    def close(self) -> None:
        """Stop the run: running tasks may finish, no new task starts.

        If another thread or coroutine is waiting for a snapshot, a `UDFRunCancelled` is raised
        there.

        Examples
        --------
        >>> import dask.array as da, udfdask as ud
        >>> from udfdask.udfs import SumUDF
        >>> snapshots = ud.run_udf_iter(da.ones((4, 3, 2, 2), chunks=1), SumUDF())
        >>> _ = next(snapshots)
        >>> snapshots.close()
        >>> list(snapshots)
        []
        """
        if self._closer is None and not self._finished:
            self._closer = _current_caller()
        if self._chunks is not None:
            self._chunks.close()
        # a thread that waits for a snapshot holds the lock, and ends the tally itself
        if self._lock.acquire(blocking=False):
            try:
                self._end_tally("cancelled")
            finally:
                self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __next__(self) -> T:
        with own_lines_hidden:
            snapshot = self._advance(_current_caller())
        if snapshot is None:
            raise StopIteration
        return self._hand_out(snapshot)

    async def __anext__(self) -> T:
        import asyncio

        with own_lines_hidden, contextlib.ExitStack() as stack:
            stack.callback(self.close)  # asyncio raises a cancellation only here
            snapshot = await asyncio.to_thread(self._advance, _current_caller())
            stack.pop_all()
        if snapshot is None:
            raise StopAsyncIteration
        return self._hand_out(snapshot)

    def __await__(self) -> Generator[Any, None, T | None]:
        return self._last().__await__()

    async def _last(self) -> T | None:
        last = None
        async for snapshot in self:
            last = snapshot
        return last

    async def aclose(self) -> None:
        """Stop the run, as `close` does.

        Examples
        --------
        >>> import asyncio, dask.array as da, udfdask as ud
        >>> from udfdask.udfs import SumUDF
        >>> async def first():
        ...     snapshots = ud.run_udf_iter(da.ones((4, 3, 2, 2), chunks=1), SumUDF())
        ...     async for snapshot in snapshots:
        ...         await snapshots.aclose()
        ...         return snapshot
        >>> asyncio.run(first())
        <Snapshot of SumUDF: 1 of 12 chunks>
        """
        self.close()

    def _hand_out(self, snapshot: Snapshot) -> T:
        """Update the live plot, then return the labeled snapshot."""
        if self._run.watch is not None:
            self._run.watch(snapshot)
        return self._label(snapshot)

    def _advance(self, reader: Any) -> Snapshot | None:
        """Return the next snapshot for `reader`, None after the last one."""
        try:
            return self._next_snapshot(reader)
        except (StopIteration, StopAsyncIteration) as error:  # a loop would end silently
            notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
            raise UDFError(
                f"{type(error).__name__} came out of a UDF or of loading the data{notes}"
            ) from error

    def _next_snapshot(self, reader: Any) -> Snapshot | None:
        """Return the next snapshot, None after the last one; exceptions are unchanged."""
        with self._lock, contextlib.ExitStack() as stack:
            if self._finished:
                return None
            self._reader = reader
            stack.push(self._end)
            if self._closer is not None:
                self._raise_if_cancelled()
                return None
            if self._chunks is None and self._run.tally is not None:
                self._run.tally.start()
                weakref.finalize(self, self._run.tally.end, "cancelled")
            if self._chunks is None and self.n_chunks:
                self._chunks = self._run.start()
                weakref.finalize(self, self._chunks.close)
                if self._closer is not None:  # closed by another thread meanwhile
                    self._chunks.close()
            if self._chunks is not None:
                try:
                    taken = self._chunks.take()
                except Closed as closed:
                    self._raise_if_cancelled(closed.__cause__)
                    return None
                if taken is None:
                    raise UDFError("the scheduler has come to its end, but not all chunks came")
                self._merge(*taken)
            if self.n_merged < self.n_chunks:
                stack.pop_all()
            return self._snapshot()

    def _merge(self, chunk: int, payload: Sequence[Any]) -> None:
        """Merge a chunk into the results of every UDF."""
        recipe = self._run.live.now
        rows = np.asarray(recipe.grid.rows(chunk), dtype=np.int64)
        for accumulator, aux, partial in zip(self._accumulators, self._aux, payload, strict=True):
            accumulator.add(recipe, partial, self._rows_merged)
            aux.add(rows, partial.aux)
        self._rows_merged[rows] = True
        self._generations[chunk] = common_generation(payload)
        self._merged_at[chunk] = self.n_merged
        self.n_merged += 1
        if self._run.tally is not None:
            self._run.tally.add((chunk,))

    def _snapshot(self) -> Snapshot:
        state = RunState(
            recipe=self._run.live.now,
            infos=self._run.infos,
            frozen=tuple(accumulator.freeze() for accumulator in self._accumulators),
            aux=self._aux,
            merged_at=self._merged_at,
            n_merged=self.n_merged,
            names=self._run.names,
            generation_of=self._generations,
            parameters=self._run.live.generations,
        )
        return Snapshot(state)

    def _end(self, kind: type[BaseException] | None, *_: Any) -> None:
        """End the run, after an exception of this kind or without one."""
        self._finished = True
        if self._chunks is not None:
            self._chunks.close()
        done = self.n_merged == self.n_chunks
        stopped = kind is None or kind is UDFRunCancelled or not issubclass(kind, Exception)
        self._end_tally("finished" if done else "cancelled" if stopped else "failed")

    def _end_tally(self, status: Status) -> None:
        if self._run.tally is not None:
            self._run.tally.end(status)

    def _raise_if_cancelled(self, cause: BaseException | None = None) -> None:
        """Raise a cancellation, unless the thread or coroutine that iterates has closed the run."""
        if self._closer is not None and self._closer == self._reader:
            return
        raise UDFRunCancelled(
            f"the run was cancelled after {self.n_merged} of {self.n_chunks} chunks had been "
            "merged: the snapshots up to then are right",
            chunks_merged=self.n_merged,
        ) from cause


class UDFIterator(SnapshotIterator[Snapshot]):
    """Iterates over the snapshots of a run, one per merged chunk, with `for` or `async for`.

    The run starts when the first snapshot is requested, stays a few chunks ahead, and stops when
    the iterator is closed, fails, is interrupted, or is no longer referenced. `await iterator` runs
    to the end and returns the last snapshot. `run_udf_iter` returns iterators.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import SumUDF
    >>> x = da.ones((4, 3, 2, 2), chunks=(1, 3, 2, 2))
    >>> with ud.run_udf_iter(x, SumUDF(), scheduler="synchronous") as snapshots:
    ...     for snapshot in snapshots:
    ...         if snapshot.buffers[0]["intensity"].sum() > 20:
    ...             break
    >>> snapshot
    <Snapshot of SumUDF: 2 of 4 chunks>
    """


def _current_caller() -> Any:
    """Identify the caller: the task of its coroutine, or else its thread."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None:
        with contextlib.suppress(RuntimeError):
            task = asyncio.current_task()
            if task is not None:
                return ("task", id(task))
    return ("thread", threading.get_ident())
