"""Check the output files and stores of a command before a run, and write them after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from udfdask.cli.live import PictureView
from udfdask.io.named_variables import result_variables
from udfdask.io.npz_file import write_npz
from udfdask.io.opened_file import OpenedFile
from udfdask.io.write_zarr import check_packages, write_zarr
from udfdask.plotting.panels import result_panels
from udfdask.plotting.static import figure_classes
from udfdask.results.result import Result
from udfdask.udf import UDF
from udfdask.writing import NPZ, PNG, ZARR, check_apart, check_target


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """The outputs of a command."""

    outs: Sequence[Path]
    """Paths of zarr stores and, with the suffix .npz, of NumPy files."""
    plot: Path | None
    """Path of a PNG file."""
    overwrite: bool
    """Whether existing outputs can be replaced."""
    sources: Sequence[str]
    """Files and stores that are read."""

    def check(self, udfs: Mapping[str, UDF]) -> None:
        """Raise if an output, or a file that a UDF writes, cannot be written."""
        kinds = {out: NPZ if _is_npz(out) else ZARR for out in self.outs}
        if ZARR in kinds.values():
            check_packages()
        if self.plot is not None:
            figure_classes()
        paths = [(out, kinds[out]) for out in self.outs]
        paths += [] if self.plot is None else [(self.plot, PNG)]
        targets = [
            check_target(path, kind, overwrite=self.overwrite, sources=self.sources)
            for path, kind in paths
        ]
        own = [target for udf in udfs.values() for target in udf._targets(self.sources)]
        check_apart([*targets, *own])

    def picture(self, names: Sequence[str], opened: OpenedFile) -> PictureView | None:
        """Return the view that draws the PNG file, also during a run; None without `plot`."""
        if self.plot is None:
            return None
        return PictureView(self.plot, names, opened, overwrite=self.overwrite, sources=self.sources)

    def write(
        self, results: dict[str, Result], opened: OpenedFile, picture: PictureView | None
    ) -> None:
        """Write computed results; if one output fails, still write the others, then raise."""
        variables = result_variables(results, opened.axes, opened.sig_dims)
        attrs = {"title": opened.title, "source": opened.reader}
        replacing: dict[str, Any] = {"overwrite": self.overwrite, "sources": self.sources}
        failures: list[Exception] = []
        for out in self.outs:
            try:
                if _is_npz(out):
                    write_npz(out, variables, **replacing)
                else:
                    write_zarr(out, variables, axes=opened.axes, attrs=attrs, **replacing)
            except (OSError, ValueError, TypeError) as error:
                failures.append(error)
            else:
                click.echo(f"wrote {out}")
        if picture is not None:
            picture.save(result_panels(results, opened.axes, opened.sig_dims), opened.title)
            click.echo(f"wrote {self.plot}")
        for failure in failures:
            raise failure


def _is_npz(out: Path) -> bool:
    """Return whether the output is a NumPy file instead of a zarr store."""
    return out.suffix.lower() == ".npz"
