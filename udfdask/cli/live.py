"""Show results on the terminal, in a window and in a picture during a run."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from time import monotonic

import click

from udfdask.cli.outputs import Outputs, save_figure
from udfdask.cli.table import summary_table
from udfdask.errors import ArgumentValueError
from udfdask.plotting.displays import has_windows
from udfdask.plotting.live import LivePlot
from udfdask.results.result import Result
from udfdask.run.progressive import Snapshot, UDFIterator

EVERY = 2.0
"""Seconds between two looks at the results."""


class LiveView:
    """Shows the results of named UDFs so far."""

    def __init__(self, names: Sequence[str], outputs: Outputs) -> None:
        self.in_place = sys.stdout.isatty()
        self._names, self._outputs = names, outputs
        self._height = 0
        has_window = find_spec("matplotlib") is not None and has_windows()
        self._plot = LivePlot(interval=0) if has_window or outputs.plot else None
        self._overwrite = outputs.overwrite

    def follow(self, snapshots: UDFIterator) -> dict[str, Result]:
        """Show snapshots every `EVERY` seconds; return the results of the last one."""
        due = 0.0
        for snapshot in snapshots:
            began = monotonic()
            if snapshot.n_merged < snapshot.n_chunks and began >= due:
                self._print(snapshot)
                # for example a full disk, or nothing to draw: the run itself can go on
                with suppress(OSError, ArgumentValueError):
                    self._draw(snapshot)
                # the run waits while views draw: allow at most a fifth of its time for them
                due = monotonic() + max(EVERY, 4 * (monotonic() - began))
        self._clear()
        return dict(zip(self._names, snapshot.buffers, strict=True))

    def _print(self, snapshot: Snapshot) -> None:
        """Print a table, which on a terminal replaces the previous one."""
        done = f"{snapshot.n_merged} of {snapshot.n_chunks} chunks"
        results = dict(zip(self._names, snapshot.buffers, strict=True))
        lines = [f"{done}, {int(snapshot.damage.sum())} frames"]
        lines += summary_table(results).splitlines()
        if not self.in_place:
            click.echo("\n".join([*lines, ""]))
            return
        self._clear()
        # a wrapped line counts as two lines, and the cursor cannot reach lines above the top
        width, height = shutil.get_terminal_size()
        lines = [line[: width - 1] for line in lines[: height - 1]]
        self._height = len(lines)
        click.echo("\n".join(lines))

    def _draw(self, snapshot: Snapshot) -> None:
        """Draw results in the window and in the file of ``--plot``."""
        file = self._outputs.plot
        if self._plot is not None and self._plot.update(snapshot) and file is not None:
            how = {"overwrite": self._overwrite, "sources": self._outputs.sources}
            save_figure(file, self._plot.figure, **how)
            self._overwrite = True  # the existing file is now our own

    def _clear(self) -> None:
        """Remove the last table from the terminal."""
        if self._height:
            click.echo(f"\x1b[{self._height}F\x1b[J", nl=False, color=True)
            self._height = 0
