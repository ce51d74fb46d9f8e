"""Check the output files and stores of a command before a run, and write them after it."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from udfdask.cli.echo import echo, going_on
from udfdask.cli.live import PictureView, detector_outlines
from udfdask.cli.options import to_path
from udfdask.io.named_variables import planned_variables, result_variables
from udfdask.io.opened_file import OpenedFile
from udfdask.io.output_formats import FORMATS, SYNONYMS, fitting_suffixes, output_format
from udfdask.plotting.labels import label_results
from udfdask.plotting.static import PICTURES, figure_classes
from udfdask.results.result import Result
from udfdask.udf import UDF
from udfdask.writing import Target, check_apart, check_target


def to_out(text: str) -> Path:
    """Convert the name of a file or store of ``--out``; raise if its suffix has no format."""
    return _with_suffix(text, (*FORMATS, *SYNONYMS), FORMATS)


def to_picture(text: str) -> Path:
    """Convert the name of a file of ``--plot``; raise if its suffix is not that of a picture."""
    return _with_suffix(text, PICTURES, PICTURES)


def _with_suffix(text: str, known: Collection[str], named: Iterable[str]) -> Path:
    """Return a path; raise BadParameter if its suffix is not a known one."""
    path = to_path(text)
    if "://" in text:
        raise click.BadParameter(f"{text!r} is not a local path: choose a local path")
    suffix = path.suffix.lower()
    if suffix in known:
        return path
    ends = f"ends in {path.suffix!r}" if suffix else "has no suffix"
    near = difflib.get_close_matches(suffix, known, n=1)
    hint = f"; did you mean {path.with_suffix(near[0]).name!r}?" if near else ""
    *others, last = named
    raise click.BadParameter(
        f"{text!r} {ends}, but the suffix says what to write: {', '.join(others)} or {last}{hint}"
    )


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

    def check(self, udfs: Mapping[str, UDF]) -> None:
        """Raise if an output, or a file that a UDF writes, cannot be written."""
        formats = {out: output_format(out) for out in self.outs}
        for each in formats.values():
            each.check_packages()
        paths = [(out, formats[out].kind) for out in self.outs]
        if self.plot is not None:
            figure_classes()
            paths.append((self.plot, PICTURES[self.plot.suffix.lower()]))
        targets = [
            check_target(path, kind, overwrite=self.overwrite, sources=self.sources)
            for path, kind in paths
        ]
        check_apart([*targets, *self.own_targets(udfs)])

    def own_targets(self, udfs: Mapping[str, UDF]) -> list[Target]:
        """Return the files that UDFs write themselves; raise if they cannot be written."""
        try:
            return [target for udf in udfs.values() for target in udf._targets(self.sources)]
        except FileExistsError as error:
            own = "on the command line overwrite=true as a parameter of the UDF"
            text = str(error).replace("on the command line --overwrite", own)
            raise FileExistsError(text) from error

    def check_results(self, results: Mapping[str, Result], opened: OpenedFile) -> None:
        """Raise BadParameter if an output cannot hold these lazy results."""
        variables = planned_variables(results, opened.axes, opened.sig_dims)
        for out in self.outs:
            obstacle = output_format(out).obstacle(variables)
            if obstacle:
                fitting = fitting_suffixes(variables)
                others = f". These formats can: {', '.join(fitting)}" if fitting else ""
                raise click.BadParameter(
                    f"{out} cannot hold the results: {obstacle}{others}", param_hint="'--out'"
                )
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
        variables = result_variables(results, opened.axes, opened.sig_dims)
        options: dict[str, Any] = {
            "axes": opened.axes,
            "attrs": {"title": opened.title, "source": opened.reader},
            "overwrite": self.overwrite,
            "sources": self.sources,
        }
        failures: list[Exception] = []
        if self.outs or picture is not None:
            _say("")
        for out in self.outs:
            try:
                output_format(out).write(out, variables, **options)
            except (OSError, ValueError, TypeError) as error:
                failures.append(error)
            else:
                _say(f"wrote {out}")
        if picture is not None and self.plot is not None:
            picture.save(picture.panels(results), opened.title)
            _say(f"wrote {self.plot}")
        for failure in failures:
            raise failure


def _say(text: str) -> None:
    """Print a text; without a reader of the output, go on with what is still to be written."""
    with going_on(True):
        echo(text)
