"""Make reporters of the argument `progress`: a progress bar, a function or a user's object."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from time import monotonic
from typing import Any

import numpy as np
from dask.utils import format_bytes

from udfdask.errors import ArgumentTypeError, UDFWarning
from udfdask.scheduling.progress.state import ProgressReporter, ProgressState

METHODS = ("start", "update", "end")

_INTERVAL = 0.1
"""Minimum time between two updates of the bar, in seconds."""


def choose_reporter(progress: Any) -> ProgressReporter | None:
    """Return the reporter that the user asks for; None for none."""
    if progress is None or isinstance(progress, bool | np.bool_):
        return SafeReporter(Bar()) if progress else None
    has_methods = all(callable(getattr(progress, name, None)) for name in METHODS)
    if (callable(progress) or has_methods) and not isinstance(progress, type):
        return SafeReporter(progress)
    raise ArgumentTypeError(
        "progress must be True for a bar, False for none, a function of a ProgressState, or an "
        f"object with the methods start, update and end; got {progress!r}"
    )


class SafeReporter:
    """Calls a reporter or a function; if it raises an exception, this warns and the run goes on."""

    def __init__(self, told: Any) -> None:
        self._told = told
        self._failed = False

    def start(self, state: ProgressState) -> None:
        """Report the start."""
        self._report("start", state)

    def update(self, state: ProgressState) -> None:
        """Report an update, unless the reporter has failed before."""
        if not self._failed:
            self._report("update", state)

    def end(self, state: ProgressState) -> None:
        """Report the end."""
        self._report("end", state)

    def _report(self, event: str, state: ProgressState) -> None:
        """Call a method of the reporter."""
        try:
            getattr(self._told, event, self._told)(state)  # a function is told everything
        except Exception as error:  # noqa: BLE001  # no error of a reporter should end a run
            if self._failed:
                return  # warn only once
            self._failed = True
            warnings.warn(
                f"{self._told!r}, passed as progress, failed to {event}: "
                f"{type(error).__name__}: {error}; the run goes on without it",
                UDFWarning,
                stacklevel=2,
            )


class Bar:
    """Shows frames, bytes and their rates with tqdm on standard error."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._start_time = self._update_time = 0.0
        self._start_nbytes = 0

    def start(self, state: ProgressState) -> None:
        """Show the bar, if there are frames to count."""
        if not state.num_frames_total:
            return
        self._start_time = self._update_time = monotonic()
        self._start_nbytes = state.num_bytes_complete
        self._bar = _bar_class()(
            total=state.num_frames_total,
            initial=state.num_frames_complete,
            unit="frame",
            unit_scale=True,
            mininterval=_INTERVAL,
        )

    def update(self, state: ProgressState) -> None:
        """Update the bar, at most every 0.1 s."""
        now = monotonic()
        if self._bar is None or now - self._update_time < _INTERVAL:
            return
        self._update_time = now
        self._show(state)

    def end(self, state: ProgressState) -> None:
        """Show the last state and close the bar."""
        if self._bar is not None:
            self._show(state)
            self._bar.close()
            self._bar = None

    def _show(self, state: ProgressState) -> None:
        """Show a state."""
        nbytes = state.num_bytes_complete - self._start_nbytes
        rate = nbytes / max(monotonic() - self._start_time, 1e-3)
        done, total = map(format_bytes, (state.num_bytes_complete, state.num_bytes_total))
        self._bar.set_postfix_str(f"{done} of {total}, {format_bytes(int(rate))}/s", refresh=False)
        self._bar.update(state.num_frames_complete - self._bar.n)


def _bar_class() -> Any:
    """Return tqdm's bar for a notebook or a terminal; without ipywidgets, the one of a terminal."""
    # not at the top: `tqdm.auto` imports asyncio, and warns in a notebook without ipywidgets
    if find_spec("ipywidgets") is None:
        from tqdm import tqdm as bar
    else:
        from tqdm.auto import tqdm as bar
    return bar
