"""Who is told: what a user passes as `progress`, and what its mistakes do."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from time import monotonic
from typing import Any

import numpy as np
from dask.utils import format_bytes

from udfdask.errors import ArgumentTypeError, UDFWarning
from udfdask.scheduling.progress.state import ProgressReporter, ProgressState

METHODS = ("start", "update", "end")

_INTERVAL = 0.1
"""Seconds between two looks of the bar."""


def choose_reporter(progress: Any) -> ProgressReporter | None:
    """Return who is to be told about a run, None for nobody."""
    if progress is None or isinstance(progress, bool | np.bool_):
        return Guarded(Bar()) if progress else None
    if isinstance(progress, type):
        raise ArgumentTypeError(
            f"progress must be an object, got the class {progress.__name__}: write "
            f"progress={progress.__name__}()"
        )
    missing = [name for name in METHODS if not callable(getattr(progress, name, None))]
    if not missing:
        return Guarded(progress)
    if callable(progress):
        return Guarded(_Function(progress))
    has = "" if len(missing) == len(METHODS) else f" without {' and '.join(missing)}"
    raise ArgumentTypeError(
        "progress must be True for a bar, False for none, a function of a ProgressState, or an "
        f"object with the methods start, update and end; got {progress!r}{has}"
    )


class Guarded:
    """Tells a reporter; an exception out of it becomes a warning and does not end the run."""

    def __init__(self, reporter: ProgressReporter) -> None:
        self._reporter = reporter
        self._failed = False

    def start(self, state: ProgressState) -> None:
        """Pass a start on."""
        self._tell("start", state)

    def update(self, state: ProgressState) -> None:
        """Pass an update on, to a reporter that has not failed yet."""
        if not self._failed:
            self._tell("update", state)

    def end(self, state: ProgressState) -> None:
        """Pass the end on."""
        self._tell("end", state)

    def _tell(self, event: str, state: ProgressState) -> None:
        """Call a method of the reporter."""
        try:
            getattr(self._reporter, event)(state)
        except Exception as error:  # noqa: BLE001  # of whatever kind: the run is worth more
            if self._failed:
                return  # once is enough
            self._failed = True
            warnings.warn(
                f"{self._reporter!r}, passed as progress, failed to {event}: "
                f"{type(error).__name__}: {error}; the run goes on without it",
                UDFWarning,
                stacklevel=2,
            )


class _Function:
    """A function that is called with every state."""

    def __init__(self, function: Callable[[ProgressState], object]) -> None:
        self._function = function

    def __repr__(self) -> str:
        return repr(self._function)

    def start(self, state: ProgressState) -> None:
        """Call it with the totals."""
        self._function(state)

    def update(self, state: ProgressState) -> None:
        """Call it with how far the run has come."""
        self._function(state)

    def end(self, state: ProgressState) -> None:
        """Call it with how the run has ended."""
        self._function(state)


class Bar:
    """Shows frames, bytes and their rates with tqdm, on standard error."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._began = self._looked = 0.0

    def start(self, state: ProgressState) -> None:
        """Open the bar, unless there is nothing to count."""
        if not state.num_frames_total:
            return
        from tqdm.auto import tqdm  # costs asyncio

        self._began = self._looked = monotonic()
        self._bar = tqdm(
            total=state.num_frames_total,
            initial=state.num_frames_complete,
            unit="frame",
            unit_scale=True,
            mininterval=_INTERVAL,
        )

    def update(self, state: ProgressState) -> None:
        """Move the bar."""
        now = monotonic()
        if self._bar is None or now - self._looked < _INTERVAL:
            return
        self._looked = now
        self._move(state)

    def end(self, state: ProgressState) -> None:
        """Close the bar where it is."""
        if self._bar is not None:
            self._move(state)
            self._bar.close()
            self._bar = None

    def _move(self, state: ProgressState) -> None:
        """Show a state."""
        rate = state.num_bytes_complete / max(monotonic() - self._began, 1e-3)
        done, total = map(format_bytes, (state.num_bytes_complete, state.num_bytes_total))
        self._bar.set_postfix_str(f"{done} of {total}, {format_bytes(int(rate))}/s", refresh=False)
        self._bar.update(state.num_frames_complete - self._bar.n)
