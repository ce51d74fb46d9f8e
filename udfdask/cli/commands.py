"""The commands `udfdask run`, `explain` and `udfs`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from udfdask.cli.command_options import CommandOptions, Inputs
from udfdask.cli.live import View, WindowView
from udfdask.cli.options import RunCommand, with_common_options
from udfdask.cli.outputs import Outputs, to_out, to_picture
from udfdask.cli.run_and_report import Live, PlannedRun, plan_run, run_in_one_pass
from udfdask.cli.scheduler_option import check_scheduler
from udfdask.cli.terminal import (
    PLANNING,
    echo,
    ending_when_asked,
    going_on,
    plain_errors,
    plain_warnings,
)
from udfdask.cli.typed_values import to_path
from udfdask.cli.udf_option import CATALOG, DETECTOR, Entry, find_entry, find_own_entry, unknown
from udfdask.graph.input_files import data_files
from udfdask.io.opened_file import OpenedFile
from udfdask.plotting.displays import has_windows
from udfdask.records.folder import folder_beside, open_folder, remove_folder
from udfdask.records.setting import cache as cache_results


@click.command(short_help="List the ready-made UDFs, or describe one.")
@click.argument("name", required=False)
def udfs(name: str | None) -> None:
    """List the ready-made UDFs, or describe the UDF called NAME: parameters and results.

    \b
    udfdask udfs
    udfdask udfs com
    udfdask udfs mine.py:Peak
    """  # noqa: D301, click wants the character
    if name is None:
        width = max(map(len, CATALOG))
        for entry in CATALOG.values():
            echo(f"{entry.name.ljust(width)}  {entry.summary}")
        return
    try:
        own = find_own_entry(name)
    except ValueError as error:
        raise click.BadParameter(f"{name!r}: {error}", param_hint="NAME") from error
    selected = find_entry(name) if own is None else own[0]
    if selected is None:
        raise click.BadParameter(unknown(name), param_hint="NAME")
    echo(_description(selected))


def _description(entry: Entry) -> str:
    """Return a description of a UDF for its users."""
    usage = f"--udf {entry.usage}"
    if entry.name == DETECTOR and not entry.place:
        usage += "\n--udf disk:r=5\n--udf ring:ri=10,ro=20"
    parts = [f"{entry.name}: {entry.summary}" if entry.summary else entry.name, usage]
    for title, heading in (("Parameters", "Parameters"), ("Notes", "Notes")):
        text = entry.section(title)
        if not text and title == "Parameters":
            text = "\n".join(map(str, entry.parameters.values()))
        if text:
            parts.append(f"{heading}\n{'-' * len(heading)}\n{text}")
    return "\n\n".join(parts)


@click.command(cls=RunCommand, short_help="Describe what a run would do, without running it.")
@with_common_options
def explain(common: CommandOptions) -> None:
    """Describe what `udfdask run` would do with FILE: chunks, tasks, bytes, memory, tiles, merges.

    This command reads no frame. Its options are those of `udfdask run`, which describes them with
    examples.

    \b
    udfdask explain scan.mib --udf com:r=20
    udfdask explain scan.mib --udf stddev --chunks 16,-1,-1,-1 --roi 0:64,0:64
    """  # noqa: D301, click wants the character
    common.check()
    inputs = common.read_files()
    with plain_warnings(), plain_errors(PLANNING):
        opened = common.open()
        run = _plan(common, inputs, opened)
        echo(f"{common.headline(opened)}\n\n{run.plan}")


def _plan(common: CommandOptions, inputs: Inputs, opened: OpenedFile) -> PlannedRun:
    """Plan what the user asks for."""
    options = {"roi": inputs.region(opened), "descan": inputs.descan, **common.planning}
    return plan_run(opened, inputs.udfs, **options)


def _show_plan(
    common: CommandOptions, opened: OpenedFile, run: PlannedRun, *, verbose: bool
) -> None:
    """Print a few lines about a run, or all of its description, and its warnings."""
    short = "\n".join([run.plan.summary, *run.plan.detectors])
    echo(f"{common.headline(opened)}\n" + (f"\n{run.plan}" if verbose else short))
    for text in run.warnings:
        if not (verbose and text in run.plan.warnings):
            echo(f"warning: {text}", err=True)
    echo()


@click.command(cls=RunCommand, short_help="Run UDFs on a file.")
@with_common_options
@click.option(
    "--scheduler",
    help="threads, processes, synchronous, or the address of a scheduler: tls://host:port, "
    "tcp://127.0.0.1:port.",
)
@click.option(
    "--insecure-scheduler",
    is_flag=True,
    help="Allow a scheduler on another machine without TLS. Anyone who reaches its port can run "
    "any code.",
)
@click.option(
    "--out",
    "outs",
    type=to_out,
    metavar="PATH",
    multiple=True,
    help="Write the results. The suffix says how: .npz, .zarr, .h5, .hspy or .tif.",
)
@click.option(
    "--overwrite",
    is_flag=True,
    help="Replace existing files of --out and --plot if they are of the same kind.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Save partial results next to the first --out, and go on with those of an interrupted "
    "run.",
)
@click.option(
    "--cache",
    type=to_path,
    metavar="FOLDER",
    help="Keep partial results in this folder, and read those that are there.",
)
@click.option(
    "--plot",
    type=to_picture,
    metavar="PATH",
    help="Draw the results. The suffix says how: .png, .pdf or .svg.",
)
@click.option("-v", "--verbose", is_flag=True, help="Print the whole plan, as `udfdask explain`.")
@click.option("--progress/--no-progress", default=True, help="Show a progress bar (default).")
@click.option(
    "--live",
    is_flag=True,
    help="Show results during the run: as a table, in a window if possible, and in the file of "
    "--plot.",
)
@click.option(
    "--every",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    default=2.0,
    show_default=True,
    help="Seconds between two updates with --live.",
)
def run(
    common: CommandOptions,
    scheduler: str | None,
    insecure_scheduler: bool,
    outs: Sequence[Path],
    overwrite: bool,
    resume: bool,
    cache: Path | None,
    plot: Path | None,
    verbose: bool,
    progress: bool,
    live: bool,
    every: float,
) -> None:
    """Run UDFs on FILE and summarize the results: ready-made ones, or a class in Python code.

    FILE is a .npy file, an HDF5 file, a zarr store, any file that HyperSpy reads, or a raw binary
    file (with --nav-shape, --sig-shape and --dtype). Zarr stores, .npy and raw files can be URLs.

    \b
    udfdask run scan.mib --udf sum --plot sum.png
    udfdask run scan.mib --udf com:cy=64,cx=62 --plot com.png
    udfdask run scan.mib --udf com:r=20 --udf stddev --out found.zarr
    udfdask run scan.mib --udf disk:r=8 --udf ring:ri=12,ro=30 --plot fields.png --live
    udfdask run scan.raw --nav-shape 256,256 --sig-shape 128,128 --dtype uint16
    udfdask run map.bcf --sig-dims 1 --roi 10:40,: --out map.npz
    udfdask run scan.mib --udf sum --descan com.npz
    udfdask run scan.mib --udf mine.py:Peak:r=5 --udf libertem.udf.stddev:StdDevUDF
    udfdask run scan.raw --nav-shape 256,256 --sig-shape 128,128 --dtype uint16 --sync-offset 3
    udfdask run long.mib --udf sum --udf com --out found.zarr --resume
    """  # noqa: D301, click wants the character
    check_scheduler(scheduler, insecure=insecure_scheduler)
    if resume and (live or not outs):
        raise click.UsageError("--resume needs --out, and does not work with --live")
    if cache and (live or resume):
        raise click.UsageError("--cache does not work with --live or --resume")
    every_source = click.get_current_context().get_parameter_source("every")
    if not live and every_source is not ParameterSource.DEFAULT:
        raise click.UsageError("--every needs --live")
    common.check()
    inputs = common.read_files()
    with ending_when_asked(), plain_warnings(), _keeping(cache):
        with plain_errors(PLANNING):
            # Check now, so that a mistake does not cost hours of computing.
            outputs = Outputs(outs=outs, plot=plot, overwrite=overwrite, sources=common.sources)
            # whether this run has written them shows after its plan
            may_be_done = resume and not overwrite and outputs.exist
            outputs = replace(outputs, overwrite=overwrite or may_be_done)
            outputs.check(inputs.udfs)
            opened = common.open()
            outputs = replace(outputs, sources=(*common.sources, *data_files(opened.array)))
            outputs.check(inputs.udfs)
        planned = _plan(common, inputs, opened)
        outputs.check_results(planned.lazy)
        names = list(inputs.udfs)
        writes = bool(outs or plot or outputs.own_targets(inputs.udfs))
        with going_on(writes):
            _show_plan(common, opened, planned, verbose=verbose)
        if resume:
            outputs = replace(outputs, overwrite=overwrite, run=planned.name)
            if may_be_done and outputs.are_of(planned.name):
                echo(f"\nnothing is left to do: this run has written {', '.join(map(str, outs))}")
                return
            with plain_errors(PLANNING):
                outputs.check(inputs.udfs)
        picture = outputs.picture(planned.lazy, inputs.udfs, opened)
        results = run_in_one_pass(
            planned,
            scheduler=scheduler,
            progress=progress,
            live=Live(every=every, views=_views(picture, names, opened)) if live else None,
            cache=open_folder(folder_beside(outs[0]), limit=None) if resume else None,
            goes_on=writes,
        )
        with plain_errors(PLANNING):
            outputs.write(results, opened, picture)
            if resume:
                remove_folder(folder_beside(outs[0]))


def _keeping(folder: Path | None) -> AbstractContextManager[Any]:
    """Return a context in which partial results are kept in a folder."""
    if folder is None:
        return nullcontext()
    with plain_errors(PLANNING):
        return cache_results(folder)


def _views(picture: View | None, names: Sequence[str], opened: OpenedFile) -> list[View]:
    """Return the views of results during a run: a window if possible, and the picture."""
    views: list[View] = []
    if find_spec("matplotlib") is not None and has_windows():
        views.append(WindowView(names, opened))
    return views if picture is None else [*views, picture]
