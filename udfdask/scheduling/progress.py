"""The progress of a run: its state, the objects that receive it, and a bar that shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from dask.utils import format_bytes

from udfdask.errors import ArgumentTypeError

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

    def __init__(self) -> None:
        self._bar: Any = None
        self._start_nbytes = 0

    def start(self, state: ProgressState) -> None:
        """Show the bar, if there are frames to count."""
        if state.num_frames_total:
            self._start_nbytes = state.num_bytes_complete
            self._bar = _bar_class()(
                total=state.num_frames_total,
                initial=state.num_frames_complete,
                unit="frame",
                unit_scale=True,
            )

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


def _bar_class() -> Any:
    """Return tqdm's bar for a notebook or a terminal; without ipywidgets, the one of a terminal."""
    # not at the top: `tqdm.auto` imports asyncio, and warns in a notebook without ipywidgets
    if find_spec("ipywidgets") is None:
        from tqdm import tqdm as bar
    else:
        from tqdm.auto import tqdm as bar
    return bar
