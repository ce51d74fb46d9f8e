"""The iterator over the snapshots of a run."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from udfdask.base.tracebacks import own_lines_hidden
from udfdask.errors import UDFError, UDFRunCancelled
from udfdask.run.progressive.chunks import Chunks, Closed
from udfdask.run.progressive.snapshot import (
    Accumulator,
    ArraySnapshot,
    MaskT_co,
    ResultT_co,
    RunState,
    Snapshot,
    progress_text,
)

if TYPE_CHECKING:
    from udfdask.run.progressive import ProgressiveRun


class UDFIterator(
    Iterator[Snapshot[ResultT_co, MaskT_co]], AsyncIterator[Snapshot[ResultT_co, MaskT_co]]
):
    """Iterates over the snapshots of a run, one per merged chunk, with `for` or `async for`.

    The run starts when the first snapshot is requested, stays a few chunks ahead, and stops when
    the iterator is closed, fails, is interrupted, or is no longer referenced. `await iterator` runs
    to the end and returns the last snapshot. `run_udf_iter` returns iterators.

    Parameters
    ----------
    run : ProgressiveRun
        The planned run.
    label : callable
        Takes a `Snapshot` of arrays; returns the one that the iterator yields.

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

    n_merged: int
    """Number of chunks that have been merged."""

    def __init__(
        self,
        run: ProgressiveRun,
        label: Callable[[ArraySnapshot], Snapshot[ResultT_co, MaskT_co]],
    ) -> None:
        recipe = run.live.now
        grid = recipe.grid
        self.n_merged = 0
        self._run, self._label = run, label
        self._chunks: Chunks | None = None
        self._accumulators = [Accumulator(recipe, k, aux) for k, aux in enumerate(run.aux_values)]
        self._rows_merged = np.zeros(grid.n_frames, dtype=bool)
        self._merged_at = np.full(grid.n_chunks, grid.n_chunks, dtype=np.int64)
        self._lock = threading.Lock()
        self._finished = False
        self._closer: tuple[int, int] | None = None

    @property
    def n_chunks(self) -> int:
        """Number of chunks of the run."""
        return len(self._merged_at)

    def __repr__(self) -> str:
        return progress_text(self, self._run.infos)

    def update_parameters(self, changes: Sequence[Mapping[str, Any]]) -> None:
        """Change parameters for all chunks that start later, and for all later merges.

        On a cluster, at most two chunks for each thread have been sent and keep the old ones.

        Parameters
        ----------
        changes : sequence of dict
            One dictionary of new values by name for each UDF; ``{}`` for a UDF without changes.

        Raises
        ------
        ArgumentValueError
            If a parameter is unknown, or the declaration of the UDF would change. Then no parameter
            changes.
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
            self._closer = _caller()
        if self._chunks is not None:
            self._chunks.close()
            self._run.log.end(status="cancelled")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __next__(self) -> Snapshot[ResultT_co, MaskT_co]:
        with own_lines_hidden:
            snapshot = self._advance(_caller())
        if snapshot is None:
            raise StopIteration
        return self._hand_out(snapshot)

    async def __anext__(self) -> Snapshot[ResultT_co, MaskT_co]:
        with own_lines_hidden, contextlib.ExitStack() as stack:
            stack.callback(self.close)  # asyncio raises a cancellation only here
            snapshot = await asyncio.to_thread(self._advance, _caller())
            stack.pop_all()
        if snapshot is None:
            raise StopAsyncIteration
        return self._hand_out(snapshot)

    def __await__(self) -> Generator[Any, None, Snapshot[ResultT_co, MaskT_co] | None]:
        return self._last().__await__()

    async def _last(self) -> Snapshot[ResultT_co, MaskT_co] | None:
        last = None
        async for snapshot in self:
            last = snapshot
        return last

    def _hand_out(self, snapshot: ArraySnapshot) -> Snapshot[ResultT_co, MaskT_co]:
        """Update the live plot, then return the labeled snapshot."""
        if self._run.watch is not None:
            self._run.watch(snapshot)
        return self._label(snapshot)

    def _advance(self, reader: tuple[int, int]) -> ArraySnapshot | None:
        """Return the next snapshot for a caller, None after the last one."""
        try:
            return self._next_snapshot(reader)
        except (StopIteration, StopAsyncIteration) as error:  # a loop would end silently
            notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
            raise UDFError(
                f"{type(error).__name__} came out of a UDF or of loading the data{notes}"
            ) from error

    def _next_snapshot(self, reader: tuple[int, int]) -> ArraySnapshot | None:
        """Return the next snapshot, None after the last one; exceptions are unchanged."""
        with self._lock, contextlib.ExitStack() as stack:
            if self._finished:
                return None
            stack.push(self._end)
            if self._closer is not None:
                if self._closer == reader:
                    return None
                raise self._cancelled()
            if self._chunks is None:
                self._start()
            if self._chunks is not None:
                try:
                    self._merge(*self._chunks.take())
                except Closed as closed:
                    if self._closer == reader:  # in a signal handler or a progress callback
                        return None
                    raise self._cancelled() from closed.__cause__
            if self.n_merged < self.n_chunks:
                stack.pop_all()
            state = RunState(self._run, self._accumulators, self._merged_at, self.n_merged)
            return Snapshot(state, state.result, lambda mask: mask)

    def _start(self) -> None:
        """Start the computation of chunks; it stops if nothing refers to this iterator any more."""
        if self.n_chunks:
            self._chunks = self._run.start()
            weakref.finalize(self, self._chunks.close)
            weakref.finalize(self, self._run.log.end, status="cancelled")
            if self._closer is not None:  # closed by another thread meanwhile
                self._chunks.close()

    def _merge(self, chunk: int, partials: Sequence[Any]) -> None:
        recipe = self._run.live.now
        for accumulator, partial in zip(self._accumulators, partials, strict=True):
            accumulator.add(recipe, partial, self._rows_merged)
        self._rows_merged[np.asarray(recipe.grid.rows(chunk), dtype=np.int64)] = True
        self._merged_at[chunk] = self.n_merged
        self.n_merged += 1

    def _end(self, _: object, error: BaseException | None, __: object) -> None:
        """End the run, after an error or without one."""
        self._finished = True
        self._run.log.end(error)
        if self._chunks is not None:
            self._chunks.close()

    def _cancelled(self) -> UDFRunCancelled:
        """Return the error of who reads a run that another one has closed."""
        return UDFRunCancelled(
            f"the run was cancelled after {self.n_merged} of {self.n_chunks} chunks had been "
            "merged: the snapshots up to then are right",
            chunks_merged=self.n_merged,
        )


def _caller() -> tuple[int, int]:
    task = None
    with contextlib.suppress(RuntimeError):  # in a thread without an event loop
        task = asyncio.current_task()
    return threading.get_ident(), id(task)
