"""Check the output files and stores of a command before a run, and write them after it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from udfdask.cli.live import PictureView, detector_outlines
from udfdask.cli.terminal import echo, going_on
from udfdask.cli.typed_values import to_path
from udfdask.errors import ArgumentValueError
from udfdask.io.opened_file import OpenedFile
from udfdask.plotting.labels import label_results
from udfdask.plotting.static import PICTURES, figure_classes
from udfdask.records.runs import RUN
from udfdask.results.result import Result
from udfdask.saving.formats import (
    FORMATS,
    check_fits,
    check_output,
    check_suffix,
    run_in_file,
    write_results,
)
from udfdask.saving.save import save_elsewhere
from udfdask.udf import UDF
from udfdask.writing import Target, check_apart, check_target


def to_out(text: str) -> Path:
    """Convert the name of a file or store of ``--out``; raise if its suffix has no format."""
    return _with_suffix(text, FORMATS)


def to_picture(text: str) -> Path:
    """Convert the name of a file of ``--plot``; raise if its suffix is not that of a picture."""
    return _with_suffix(text, PICTURES)


def _with_suffix(text: str, known: Iterable[str]) -> Path:
    """Return a path; raise BadParameter if its suffix is not a known one."""
    path = to_path(text)
    if "://" in text:
        raise click.BadParameter(f"{text!r} is not a local path: choose a local path")
    try:
        check_suffix(path, known)
    except ArgumentValueError as error:
        raise click.BadParameter(str(error)) from error
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """The outputs of a command."""

    outs: Sequence[Path]
    """Paths of files and stores with results."""
    plot: Path | None
    """Path of a picture."""
    overwrite: bool
    """Whether existing outputs can be replaced."""
    sources: Sequence[str]
    """Files and stores that are read."""
    run: str = ""
    """Name of the run, with which an output shows that it is finished; empty without --resume."""

    def check(self, udfs: Mapping[str, UDF]) -> None:
        """Raise if an output, or a file that a UDF writes, cannot be written."""
        how: dict[str, Any] = {"overwrite": self.overwrite, "sources": self.sources}
        targets = [check_output(out, **how) for out in self.outs]
        if self.plot is not None:
            figure_classes()
            targets.append(check_target(self.plot, **how))
        check_apart([*targets, *self.own_targets(udfs)])

    @property
    def exist(self) -> bool:
        """Whether all outputs exist."""
        return all(path.exists() for path in (*self.outs, self.plot) if path is not None)

    def are_of(self, run: str) -> bool:
        """Return whether all outputs exist and at least one says that this run has written it."""
        return self.exist and any(run_in_file(out) == run for out in self.outs)

    def own_targets(self, udfs: Mapping[str, UDF]) -> list[Target]:
        """Return the files that UDFs write themselves; raise if they cannot be written."""
        return [target for udf in udfs.values() for target in udf._targets(self.sources)]

    def check_results(self, results: Mapping[str, Result]) -> None:
        """Raise ClickException if these lazy results do not fit into an output."""
        for out in self.outs:
            try:
                check_fits(out, results)
                check_output(out, overwrite=self.overwrite, sources=self.sources)
            except ArgumentValueError as error:
                raise click.BadParameter(str(error), param_hint="'--out'") from error
            except OSError as error:
                raise click.ClickException(str(error)) from error
        drawn = [one for each in results.values() for one in label_results(each).values()]
        if self.plot is not None and all(one.obstacle for one in drawn):
            reasons = [f"{one.title}: {one.obstacle}" for one in drawn] or ["there is no result"]
            raise click.BadParameter(
                f"{self.plot} would be empty, because no result can be drawn "
                f"({'; '.join(reasons)})",
                param_hint="'--plot'",
            )

    def picture(
        self, lazy: Mapping[str, Result], udfs: Mapping[str, UDF], opened: OpenedFile
    ) -> PictureView | None:
        """Return the view that draws the picture, also during a run; None without `plot`."""
        if self.plot is None:
            return None
        return PictureView(
            self.plot,
            list(udfs),
            opened,
            overwrite=self.overwrite,
            sources=self.sources,
            outlines=detector_outlines(lazy, udfs),
        )

    def write(
        self, results: dict[str, Result], opened: OpenedFile, picture: PictureView | None
    ) -> None:
        """Write computed results; if one output fails, still write the others, then raise."""
        failures: list[Exception] = []
        if self.outs or picture is not None:
            _say("")
        for out in self.outs:
            try:
                write_results(
                    out,
                    results,
                    attrs=self._attrs(opened),
                    overwrite=self.overwrite,
                    sources=self.sources,
                )
            except Exception as error:  # noqa: BLE001, packages that write files raise many kinds
                failures.append(error)
            else:
                _say(f"wrote {out}")
        if failures and len(failures) == len(self.outs):  # no file has the results
            save_elsewhere(failures[0], self.outs[0], results, self._attrs(opened))
        if picture is not None and self.plot is not None:
            try:
                picture.save(picture.panels(results), opened.title)
            except Exception as error:  # noqa: BLE001, it is raised after the other messages
                failures.append(error)
            else:
                _say(f"wrote {self.plot}")
        if failures:
            first, *others = failures
            for other in others:
                first.add_note(str(other))
            raise first

    def _attrs(self, opened: OpenedFile) -> dict[str, str]:
        """Return the attributes of a file of results."""
        attrs = {"title": opened.title, "source": opened.reader}
        return {**attrs, RUN: self.run} if self.run else attrs


def _say(text: str) -> None:
    """Print a text; without a reader of the output, go on with what is still to be written."""
    with going_on(True):
        echo(text)
