"""`udfdask run`: ready-made UDFs on a file."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import click

from udfdask.cli.asked import Asked, takes_asked
from udfdask.cli.failures import PLANNING, plain_warnings, told_plainly
from udfdask.cli.live import PictureView, View, WindowView
from udfdask.cli.one_pass import Live, run_in_one_pass
from udfdask.cli.options import PathType
from udfdask.io.npz_file import check_npz, write_npz
from udfdask.io.opened import OpenedFile
from udfdask.io.opening import open_file
from udfdask.io.variables import result_variables
from udfdask.io.zarr_store import check_target, write_zarr
from udfdask.plotting.panels import result_panels
from udfdask.plotting.screens import has_windows
from udfdask.plotting.static import check_png, save_png
from udfdask.results import Result


@click.command(short_help="Run ready-made UDFs on a file.")
@takes_asked
@click.option("--scheduler", help="threads, processes, synchronous, or tcp://host:port.")
@click.option(
    "--out",
    "outs",
    type=PathType(),
    multiple=True,
    help="Write the results to a zarr store, or to a NumPy file if it ends in .npz.",
)
@click.option("--overwrite", is_flag=True, help="Replace what --out names if it is there.")
@click.option("--plot", type=PathType(), help="Draw the results into a PNG file.")
@click.option("--progress/--no-progress", default=True, help="Show a progress bar; the default.")
@click.option(
    "--live",
    is_flag=True,
    help="Show what has been found so far while the run goes on: as a table, in a window where "
    "there can be one, and in the file of --plot.",
)
@click.option(
    "--every",
    type=click.FloatRange(min=0),
    default=2.0,
    show_default=True,
    help="Seconds between two looks with --live.",
)
def run(
    asked: Asked,
    scheduler: str | None,
    outs: Sequence[Path],
    overwrite: bool,
    plot: Path | None,
    progress: bool,
    live: bool,
    every: float,
) -> None:
    """Run ready-made UDFs on FILE and sum up what they find.

    FILE is a .npy file, an HDF5 file, a zarr store, any file that HyperSpy reads, or, with
    --nav-shape, --sig-shape and --dtype, a raw binary file.

    \b
    udfdask run scan.mib --udf sum --plot sum.png
    udfdask run scan.mib --udf com:r=20 --udf stddev --out found.zarr
    udfdask run scan.mib --detector disk,r=8 --detector ring,ri=12,ro=30 --plot fields.png --live
    udfdask run scan.raw --nav-shape 256,256 --sig-shape 128,128 --dtype uint16
    udfdask run map.bcf --sig-dims 1 --roi 10:40,: --out map.npz
    """  # noqa: D301, click wants the character
    with plain_warnings():
        with told_plainly(PLANNING):
            # Before hours of computing, not after.
            _check_outputs(outs, plot, overwrite=overwrite)
            opened = open_file(asked.file, **asked.opening)
        click.echo(asked.headline(opened))
        udfs = asked.named_udfs
        views = _views(plot, list(udfs), opened) if live else []
        results = run_in_one_pass(
            opened.array,
            udfs,
            sig_dims=opened.sig_dims,
            roi=asked.region(opened),
            scheduler=scheduler,
            progress=progress,
            live=Live(every=every, views=views) if live else None,
        )
        with told_plainly(PLANNING):
            _write(results, opened, outs, plot, overwrite=overwrite)


def _views(plot: Path | None, names: Sequence[str], opened: OpenedFile) -> list[View]:
    """Return what shows results on the way: a window where there can be one, and the picture."""
    views: list[View] = []
    if find_spec("matplotlib") is not None and has_windows():
        views.append(WindowView(names, opened))
    if plot is not None:
        views.append(PictureView(plot, names, opened))
    return views


def _check_outputs(outs: Sequence[Path], plot: Path | None, *, overwrite: bool) -> None:
    """Take the files to be written; raise if one of them cannot be."""
    for out in outs:
        check = check_npz if _is_npz(out) else check_target
        check(out, overwrite=overwrite)
    if plot is not None:
        check_png(plot)


def _is_npz(out: Path) -> bool:
    """Whether a NumPy file is asked for rather than a zarr store."""
    return out.suffix.lower() == ".npz"


def _write(
    results: dict[str, Result],
    opened: OpenedFile,
    outs: Sequence[Path],
    plot: Path | None,
    *,
    overwrite: bool,
) -> None:
    """Take computed results and the files asked for; write them."""
    variables = result_variables(results, opened.axes, opened.sig_dims)
    attrs = {"title": opened.title, "source": opened.reader}
    for out in outs:
        if _is_npz(out):
            write_npz(out, variables, overwrite=overwrite)
        else:
            write_zarr(out, variables, axes=opened.axes, attrs=attrs, overwrite=overwrite)
        click.echo(f"wrote {out}")
    if plot is not None:
        panels = result_panels(results, opened.axes, opened.sig_dims)
        save_png(plot, panels, title=opened.title)
        click.echo(f"wrote {plot}")
