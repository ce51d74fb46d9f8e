"""What is told about a run, and who may be told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

Status = Literal["running", "finished", "failed", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressState:
    """How far a run has come.

    The names of numbers are those of LiberTEM's class. A frame that several UDFs or several runs
    of one computation see counts once, when all of them are done with it; a part of it counts when
    some of them are.

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
    """Data of the chunks that have been processed, in bytes."""
    num_bytes_total: int
    """Data of all chunks to process, in bytes, as dask sees them (before any decompression)."""
    num_part_complete: int
    """Chunks that have been processed."""
    num_part_total: int
    """Chunks to process."""
    progress_id: str
    """The same for all that is told about one run, and different for another."""
    status: Status
    """"running"; at the end "finished", "failed", or "cancelled" (Ctrl-C, a closed iterator)."""


class ProgressReporter(Protocol):
    """Whoever wants to be told how a run gets on: what ``progress=`` takes.

    Any object with these methods will do; none has to be inherited from. They are called in the
    thread that waits for the run. An exception out of one of them becomes a `UDFWarning`, the run
    goes on, and `update` is not called any more.

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
        """Take the totals of a run that starts now.

        Parameters
        ----------
        state : ProgressState
            All numbers of what is complete are 0, unless a cluster has some of it already.
        """

    def update(self, state: ProgressState) -> None:
        """Take how far the run has come, after each chunk or several of them.

        Parameters
        ----------
        state : ProgressState
            Numbers since the start of the run.
        """

    def end(self, state: ProgressState) -> None:
        """Take how the run has ended; called once for each `start`, whatever happened.

        Parameters
        ----------
        state : ProgressState
            Its `status` says how.
        """


Progress: TypeAlias = bool | ProgressReporter | Callable[[ProgressState], object] | None
"""What ``progress=`` takes."""
