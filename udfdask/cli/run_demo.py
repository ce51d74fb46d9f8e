"""The command `udfdask demo`, which needs no input file."""

from __future__ import annotations

import itertools
import textwrap
from pathlib import Path

import click
import numpy as np

from udfdask.cli.outputs import save_figure, to_picture
from udfdask.cli.table import summary_table
from udfdask.cli.terminal import PLANNING, plain_errors, plain_warnings
from udfdask.demo import disk_center, make_recording
from udfdask.geometry.axes import Axis
from udfdask.plotting.displays import figure_class
from udfdask.plotting.panels import Panel
from udfdask.plotting.static import draw
from udfdask.results.result import Result
from udfdask.run.run_udf import compute, run_udf
from udfdask.udfs import AutoUDF, SumSigUDF, SumUDF
from udfdask.writing.targets import check_target

SAME_IN_PYTHON = """\
import udfdask as ud
from udfdask import demo, udfs
x = demo.make_recording()  # a lazy dask array: scan y, scan x, detector y, detector x
runs = ud.run_udf(x, [udfs.SumUDF(), udfs.SumSigUDF(), udfs.AutoUDF(f=demo.disk_center)])
pattern, image, shift = ud.compute(*runs, progress=True)  # one pass; pattern.plot() draws
"""

NEXT = """\
Next:
  udfdask run FILE --udf sum           run a UDF on your own data (udfdask run --help)
  udfdask udfs                         list all ready-made UDFs
  docs/getting-started/ten-minutes.md  go from a file to an analysis of your own
  docs/user-guide/writing/basics.md    how to write a UDF
"""


@click.command(short_help="Make a 4D-STEM dataset and analyze it in one pass.")
@click.option(
    "--plot",
    type=to_picture,
    metavar="PATH",
    show_default="udfdask-demo.png, with a number if this file already exists",
    help="The picture to draw: .png, .pdf or .svg.",
)
@click.option("--overwrite", is_flag=True, help="Replace the picture if it exists.")
@click.option("--progress/--no-progress", default=True, help="Show a progress bar (default).")
def demo(plot: Path | None, overwrite: bool, progress: bool) -> None:
    """Make a small 4D-STEM dataset, run three UDFs over it in one pass, and draw the results.

    Two of the UDFs are built in; the third is a plain function of one frame. The demo prints
    five lines of Python that do the same.
    """
    recording = make_recording()
    ny, nx, ky, kx = recording.shape
    with plain_warnings():
        with plain_errors(PLANNING):
            figure_class()  # raises if there is no matplotlib
            place = plot or _free_name(overwrite=overwrite)
            check_target(place, overwrite=overwrite)
        udfs = {"sum": SumUDF(), "sumsig": SumSigUDF(), "com": AutoUDF(f=disk_center)}
        runs = run_udf(recording, udfs, sig_dims=2)
        click.echo(f"A strained crystal with particles on it, {ny} x {nx} frames of {ky} x {kx}")
        click.echo(f"{runs['sum'].explain().summary}\n")
        results = dict(zip(runs, compute(*runs.values(), progress=progress), strict=True))
        click.echo(summary_table(results))
        with plain_errors(PLANNING):
            title = f"udfdask demo: three UDFs, one pass over {ny * nx} frames"
            save_figure(place, draw(_panels(results, ny * nx), title=title), overwrite=overwrite)
    click.echo(f"\nwrote {place}\n\nThe same in Python:\n")
    click.echo(textwrap.indent(SAME_IN_PYTHON, "  "))
    click.echo(NEXT.rstrip())


def _free_name(*, overwrite: bool) -> Path:
    """Return a file name for the picture that does not exist yet, or the first with overwrite."""
    names = itertools.chain(
        ["udfdask-demo.png"], map("udfdask-demo-{}.png".format, itertools.count(2))
    )
    return next(Path(name) for name in names if overwrite or not Path(name).exists())


def _panels(results: dict[str, Result], frames: int) -> list[Panel]:
    """Return the four panels of the figure, from computed results and the number of frames."""
    scan = (Axis(name="scan y"), Axis(name="scan x"))
    frame = (Axis(name="detector y"), Axis(name="detector x"))
    shift = np.asarray(results["com"]["result"])
    return [
        Panel(
            title="Mean diffraction pattern",
            values=np.asarray(results["sum"]["intensity"]) / frames,
            axes=frame,
            style="pattern",
            log=True,
            label="counts per frame",
        ),
        Panel(
            title="Sum of each frame",
            values=np.asarray(results["sumsig"]["intensity"]),
            axes=scan,
            label="counts",
        ),
        *(
            Panel(
                title=f"Shift of the central disk along {name}",
                values=shift[..., component],
                axes=scan,
                style="signed",
                label="pixels",
            )
            for component, name in enumerate("yx")
        ),
    ]
