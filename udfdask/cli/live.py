"""Show results on the terminal, in a window and in a picture during a run."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

from udfdask.cli.terminal import echo
from udfdask.errors import ArgumentValueError
from udfdask.io.opened_file import OpenedFile
from udfdask.plotting.live import LivePlot
from udfdask.plotting.panels import Panel, result_panels
from udfdask.plotting.static import save_picture
from udfdask.plotting.table import summary_table
from udfdask.results.detectors import detector_masks
from udfdask.results.result import Result
from udfdask.run.progressive import Snapshot, UDFIterator
from udfdask.udf import UDF
from udfdask.udfs import SumUDF, VirtualDetectorUDF

View = Callable[[Snapshot], None]
"""Shows a snapshot somewhere."""


def last_snapshot(snapshots: UDFIterator, views: Sequence[View], *, every: float) -> Snapshot:
    """Show snapshots of a run every `every` seconds; return the last snapshot without showing it.

    The caller shows the last snapshot.
    """
    due = -float("inf")
    for snapshot in snapshots:
        began = monotonic()
        if snapshot.n_merged < snapshot.n_chunks and began >= due:
            for view in views:
                view(snapshot)
            shown = monotonic()
            # the run waits while views draw: allow at most a fifth of the run time for drawing
            due = shown + max(every, 4 * (shown - began)) if every else shown
    return snapshot


def named_results(names: Sequence[str], snapshot: Snapshot) -> dict[str, Result]:
    """Return the results of a snapshot by name."""
    return dict(zip(names, snapshot.buffers, strict=True))


class TableView:
    """Print a table of the results so far; on a terminal, it replaces the previous table."""

    def __init__(self, names: Sequence[str]) -> None:
        self.in_place = sys.stdout.isatty()
        self._names = names
        self._height = 0

    def __call__(self, snapshot: Snapshot) -> None:
        """Print a snapshot."""
        damage = snapshot.damage
        lines = [
            f"{snapshot.n_merged} of {snapshot.n_chunks} chunks, {int(damage.sum())} frames",
            *summary_table(named_results(self._names, snapshot)).splitlines(),
        ]
        self.clear()
        if self.in_place:
            # a wrapped line counts as two lines, and the cursor cannot reach lines above the top
            width, height = shutil.get_terminal_size()
            lines = [line[: width - 1] for line in lines[: height - 1]]
            self._height = len(lines)
        echo("\n".join(lines) + ("" if self.in_place else "\n"))

    def clear(self) -> None:
        """Remove the last table from the terminal."""
        if self._height:
            echo(f"\x1b[{self._height}F\x1b[J", newline=False)
            self._height = 0


class WindowView:
    """Draw the results so far in a window; the user can close the window."""

    def __init__(self, names: Sequence[str], opened: OpenedFile) -> None:
        self.plot = LivePlot(axes=opened.axes, interval=0)  # last_snapshot limits the updates
        self._names = names
        self._opened = opened

    def __call__(self, snapshot: Snapshot) -> None:
        """Draw a snapshot."""
        results = named_results(self._names, snapshot)
        if result_panels(results, self._opened.axes, self._opened.sig_dims):
            self.plot.update(snapshot)


def detector_outlines(results: Mapping[str, Result], udfs: Mapping[str, UDF]) -> dict[str, Any]:
    """Return the masks of the virtual detectors of a run over images, by their names."""
    outlines: dict[str, Any] = {}
    for name, udf in udfs.items():
        if isinstance(udf, VirtualDetectorUDF):
            # a detector that cannot be drawn, such as one around lazy centers, is no mistake
            with suppress(ArgumentValueError):
                outlines |= detector_masks(results[name]._info, {name: udf})
    return outlines


class PictureView:
    """Draw the results so far into a file, which an image viewer can reload.

    The outlines of detectors are drawn over the sum of all frames.
    """

    def __init__(
        self,
        path: Path,
        names: Sequence[str],
        opened: OpenedFile,
        *,
        overwrite: bool = False,
        sources: Sequence[str | os.PathLike[str]] = (),
        outlines: Mapping[str, Any] | None = None,
    ) -> None:
        self._path = path
        self._names = names
        self._opened = opened
        self._overwrite = overwrite
        self._sources = sources
        self._outlines = outlines or {}
        self._has_failed = False

    def panels(self, results: Mapping[str, Result]) -> list[Panel]:
        """Return the panels of computed results."""
        drawn: list[Panel] = []
        for name, result in results.items():
            own = result_panels({name: result}, self._opened.axes, self._opened.sig_dims)
            outlines = self._outlines if result.udf_name == SumUDF.__name__ else {}
            drawn += [replace(panel, outlines=outlines) for panel in own]
        return drawn

    def __call__(self, snapshot: Snapshot) -> None:
        """Draw a snapshot."""
        opened = self._opened
        results = named_results(self._names, snapshot)
        panels = self.panels(results)
        if not panels or self._has_failed:
            return
        title = f"{opened.title}: {snapshot.n_merged} of {snapshot.n_chunks} chunks"
        try:
            self.save(panels, title)
        except OSError as error:  # for example a full disk: the run itself can go on
            self._has_failed = True
            echo(f"warning: no picture is drawn during the run: {error}", err=True)

    def save(self, panels: Sequence[Panel], title: str) -> None:
        """Draw panels into the file."""
        save_picture(
            self._path, panels, title=title, overwrite=self._overwrite, sources=self._sources
        )
        self._overwrite = True  # the existing file is now our own
