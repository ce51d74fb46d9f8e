"""A progress bar, in a terminal or in a notebook."""

from __future__ import annotations

from time import monotonic
from typing import Any

from dask.utils import format_bytes

from udfdask.scheduling.progress.state import ProgressState

_INTERVAL = 0.1
"""Seconds between two looks of the bar."""


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
