"""Check the output files of a command before a run, and write them after it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from udfdask.base.replacing import replacing
from udfdask.base.targets import check_apart, check_target
from udfdask.errors import ArgumentValueError
from udfdask.io.opened_file import OpenedFile
from udfdask.plotting.choose import choose
from udfdask.plotting.displays import figure_class
from udfdask.plotting.static import draw
from udfdask.results.result import Result
from udfdask.results.saving import (
    FORMATS,
    check_fits,
    check_output,
    check_suffix,
    write_results,
)
from udfdask.udf import UDF


def to_out(text: str, known: Iterable[str] = FORMATS) -> Path:
    """Convert the name of a file or store of ``--out``; raise if its suffix has no format."""
    if "://" in text:
        raise click.BadParameter(f"{text!r} is not a local path: choose a local path")
    try:
        check_suffix(Path(text), known)
    except ArgumentValueError as error:
        raise click.BadParameter(str(error)) from error
    return Path(text)


def to_picture(text: str) -> Path:
    """Convert the name of a file of ``--plot``; raise if its suffix is not that of a picture."""
    return to_out(text, (".png", ".pdf", ".svg"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """The files and stores for results, and perhaps a picture; never a source of the data."""

    outs: Sequence[Path]
    plot: Path | None
    overwrite: bool
    sources: Sequence[str]

    @property
    def how(self) -> dict[str, Any]:
        """Arguments of functions that write."""
        return {"overwrite": self.overwrite, "sources": self.sources}

    def check(self, udfs: Mapping[str, UDF], results: Mapping[str, Result]) -> None:
        """Raise if an output cannot be written, or cannot hold these lazy results."""
        targets = [check_output(out, **self.how) for out in self.outs]
        targets += [target for udf in udfs.values() for target in udf._targets(self.sources)]
        if self.plot is not None:
            figure_class()  # raises if there is no matplotlib
            targets.append(check_target(self.plot, **self.how))
            # raises if there is nothing to draw
            choose(True, [result._info for result in results.values()])
        check_apart(targets)
        for out in self.outs:
            check_fits(out, results)

    def write(self, results: Mapping[str, Result], opened: OpenedFile) -> list[Path]:
        """Write all computed results that can be."""
        attrs = {"title": opened.title, "source": opened.reader}
        written: list[Path] = []
        failures: list[Exception] = []
        for path in filter(None, (*self.outs, self.plot)):
            try:
                if path is self.plot:
                    written.append(save_figure(path, draw_all(results, opened.title), **self.how))
                else:
                    written.append(write_results(path, results, attrs=attrs, **self.how))
            except Exception as error:  # noqa: BLE001, packages that write files raise many kinds
                failures.append(error)
        if failures:
            for other in failures[1:]:
                failures[0].add_note(str(other))
            raise failures[0]
        return written


def draw_all(results: Mapping[str, Result], title: str) -> Any:
    """Draw what can be drawn of computed results; return the figure."""
    every = list(results.values())
    panels: list[Any] = []
    for choice in choose(True, [result._info for result in every]):
        result = every[choice.udf]
        panels += choice.panels(result[choice.name], result.valid_mask[choice.name])
    if len(every) == 1:  # `choose` names UDFs only if there are several
        panels = [replace(panel, title=f"{every[0].name}: {panel.title}") for panel in panels]
    return draw(panels, title=title)


def save_figure(path: Path, figure: Any, **how: Any) -> Path:
    """Save a figure in a file whose suffix says its kind; return the path."""
    with replacing(check_target(path, **how)) as unfinished:
        figure.savefig(unfinished, dpi=150, format=path.suffix.lower().removeprefix("."))
    return path
