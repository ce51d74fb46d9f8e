"""The state of a run, and the interface of objects that receive it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

Status = Literal["running", "finished", "failed", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressState:
    """The progress of a run.

    The numbers have the names of LiberTEM's class. If several UDFs or runs of one computation
    process the same frame, the frame counts once: in parts, as each of them finishes.

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
    """"running"; at the end "finished", "failed", or "cancelled" (Ctrl-C, a closed iterator)."""


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
        """Receive the totals when a run starts.

        Parameters
        ----------
        state : ProgressState
            Nothing is complete, unless a cluster or a cache already has some results.
        """

    def update(self, state: ProgressState) -> None:
        """Receive the progress after one or more chunks.

        Parameters
        ----------
        state : ProgressState
            Numbers since the start of the run.
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
