"""`udfdask run`: a ready-made UDF on a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from udfdask.cli.failures import PLANNING, plain_warnings, told_plainly
from udfdask.cli.one_pass import run_in_one_pass
from udfdask.cli.options import (
    ChunksType,
    DetectorType,
    Index,
    RegionType,
    ShapeType,
    region_mask,
)
from udfdask.io.opened import OpenedFile
from udfdask.io.opening import open_file
from udfdask.io.variables import result_variables
from udfdask.io.zarr_store import check_target, write_zarr
from udfdask.plotting.panels import result_panels
from udfdask.plotting.static import check_png, save_png
from udfdask.results import Result
from udfdask.udf import UDF
from udfdask.udfs import NoOpUDF, PickUDF, SumSigUDF, SumUDF, VirtualDetectorUDF

UDFS: dict[str, type[UDF]] = {
    "sum": SumUDF,
    "sumsig": SumSigUDF,
    "pick": PickUDF,
    "noop": NoOpUDF,
}


@click.command(short_help="Run ready-made UDFs on a file.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--udf",
    "names",
    type=click.Choice(sorted(UDFS)),
    multiple=True,
    default=("sum", "sumsig"),
    show_default="sum and sumsig",
    help="What to run; may be given several times, all run in one pass.",
)
@click.option(
    "--detector",
    "detectors",
    type=DetectorType(),
    multiple=True,
    help="A virtual detector in the same pass: disk,r=5 or ring,cx=64,cy=60,ri=10,ro=20 in pixels.",
)
@click.option("--sig-dims", type=int, help="Number of signal dimensions; by default the file's.")
@click.option("--roi", type=RegionType(), help="Part of the scan: y0:y1,x0:x1 or a position.")
@click.option("--chunks", type=ChunksType(), help="Chunks to read in: 4,4,-1,-1 or auto or 64MiB.")
@click.option("--dataset", help="Which dataset: a path in the file, or a signal's number or title.")
@click.option("--nav-shape", type=ShapeType(), help="Scan positions of a raw file: 256,256.")
@click.option("--sig-shape", type=ShapeType(), help="Detector pixels of a raw file: 128,128.")
@click.option("--dtype", help="Type of the values in a raw file: uint16, >u2.")
@click.option(
    "--offset", type=click.IntRange(min=0), default=0, help="Bytes before the frames of a raw file."
)
@click.option("--scheduler", help="threads, processes, synchronous, or tcp://host:port.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the results to a zarr store.")
@click.option("--overwrite", is_flag=True, help="Replace the zarr store if it is there.")
@click.option("--plot", type=click.Path(path_type=Path), help="Draw the results into a PNG file.")
def run(
    file: Path,
    names: Sequence[str],
    detectors: Sequence[VirtualDetectorUDF],
    sig_dims: int | None,
    roi: Index | None,
    chunks: Any,
    dataset: str | None,
    nav_shape: tuple[int, ...] | None,
    sig_shape: tuple[int, ...] | None,
    dtype: str | None,
    offset: int,
    scheduler: str | None,
    out: Path | None,
    overwrite: bool,
    plot: Path | None,
) -> None:
    """Run ready-made UDFs on FILE and sum up what they find.

    FILE is a .npy file, an HDF5 file, a zarr store, any file that HyperSpy reads, or, with
    --nav-shape, --sig-shape and --dtype, a raw binary file.

    \b
    udfdask run scan.mib --udf sum --plot sum.png
    udfdask run scan.mib --detector disk,r=8 --detector ring,ri=12,ro=30 --plot fields.png
    udfdask run scan.raw --nav-shape 256,256 --sig-shape 128,128 --dtype uint16
    udfdask run map.bcf --sig-dims 1 --roi 10:40,: --out map.zarr
    """  # noqa: D301, click wants the character
    with plain_warnings():
        with told_plainly(PLANNING):
            # Before hours of computing, not after.
            _check_outputs(out, plot, overwrite=overwrite)
            opened = open_file(
                file,
                dataset=dataset,
                nav_shape=nav_shape,
                sig_shape=sig_shape,
                dtype=dtype,
                offset=offset,
                sig_dims=sig_dims,
                chunks=chunks,
            )
        click.echo(_headline(file, opened))
        nav_dims = opened.array.ndim - opened.sig_dims
        results = run_in_one_pass(
            opened.array,
            {**{name: UDFS[name]() for name in dict.fromkeys(names)}, **_named(detectors)},
            sig_dims=opened.sig_dims,
            roi=None if roi is None else region_mask(roi, opened.array.shape[:nav_dims]),
            scheduler=scheduler,
        )
        with told_plainly(PLANNING):
            _write(results, opened, out, plot, overwrite=overwrite)


def _named(detectors: Sequence[VirtualDetectorUDF]) -> dict[str, UDF]:
    """Take detectors; return them by their shapes, the second disk as ``disk_2``."""
    named: dict[str, UDF] = {}
    for detector in detectors:
        shape = name = str(detector.params.shape)
        n = 1
        while name in named:
            n += 1
            name = f"{shape}_{n}"
        named[name] = detector
    return named


def _check_outputs(out: Path | None, plot: Path | None, *, overwrite: bool) -> None:
    """Take the files to be written; raise if one of them cannot be."""
    if out is not None:
        check_target(out, overwrite=overwrite)
    if plot is not None:
        check_png(plot)


def _headline(file: Path, opened: OpenedFile) -> str:
    """Take a file's path and what it opened as; return a line about it."""
    array, sig = opened.array, opened.sig_dims
    nav = " x ".join(map(str, array.shape[: array.ndim - sig])) or "1"
    frame = " x ".join(map(str, array.shape[array.ndim - sig :]))
    return f"{file.name}: {nav} positions of {frame} {array.dtype}, read by {opened.reader}\n"


def _write(
    results: dict[str, Result],
    opened: OpenedFile,
    out: Path | None,
    plot: Path | None,
    *,
    overwrite: bool,
) -> None:
    """Take computed results and the files asked for; write them."""
    if out is not None:
        variables = result_variables(results, opened.axes, opened.sig_dims)
        attrs = {"title": opened.title, "source": opened.reader}
        write_zarr(out, variables, axes=opened.axes, attrs=attrs, overwrite=overwrite)
        click.echo(f"wrote {out}")
    if plot is not None:
        panels = result_panels(results, opened.axes, opened.sig_dims)
        save_png(plot, panels, title=opened.title)
        click.echo(f"wrote {plot}")
