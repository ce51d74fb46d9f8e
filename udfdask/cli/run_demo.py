"""The command `udfdask demo`, which needs no input file."""

from __future__ import annotations

import textwrap
from pathlib import Path

import click

from udfdask.base.targets import check_target
from udfdask.cli.outputs import draw_all, save_figure, to_picture
from udfdask.cli.terminal import PLANNING, plain_errors, plain_warnings, summary_table
from udfdask.demo import disk_center, make_recording
from udfdask.plotting.displays import figure_class
from udfdask.run.run_udf import compute, run_udf
from udfdask.udfs import AutoUDF, SumSigUDF, SumUDF

SAME_IN_PYTHON = """\
import udfdask as ud
from udfdask import demo, udfs
x = demo.make_recording()  # a lazy dask array: scan y, scan x, detector y, detector x
runs = ud.run_udf(x, [udfs.SumUDF(), udfs.SumSigUDF(), udfs.AutoUDF(f=demo.disk_center)])
pattern, image, shift = ud.compute(*runs, progress=True)  # one pass; pattern.plot() draws
"""

NEXT = "Next: udfdask run FILE --udf sum, udfdask udfs, docs/user-guide/writing/basics.md"


@click.command("demo", short_help="Make a 4D-STEM dataset and analyze it in one pass.")
@click.option(
    "--plot",
    type=to_picture,
    default="udfdask-demo.png",
    metavar="PATH",
    help="The picture to draw: .png, .pdf or .svg; by default udfdask-demo.png.",
)
@click.option("--overwrite", is_flag=True, help="Replace the picture if it exists.")
@click.option("--progress/--no-progress", default=True, help="Show a progress bar (default).")
def demo_command(plot: Path, overwrite: bool, progress: bool) -> None:
    """Make a small 4D-STEM dataset, run three UDFs over it in one pass, and draw the results.

    Two of the UDFs are built in; the third is a plain function of one frame. The demo prints
    five lines of Python that do the same.
    """
    recording = make_recording()
    ny, nx, ky, kx = recording.shape
    with plain_warnings(), plain_errors(PLANNING):
        figure_class()  # raises if there is no matplotlib
        check_target(plot, overwrite=overwrite)
        udfs = {"sum": SumUDF(), "sumsig": SumSigUDF(), "com": AutoUDF(f=disk_center)}
        runs = run_udf(recording, udfs, sig_dims=2)
        click.echo(f"A strained crystal with particles on it, {ny} x {nx} frames of {ky} x {kx}")
        click.echo(f"{runs['sum'].explain().summary}\n")
        results = dict(zip(runs, compute(*runs.values(), progress=progress), strict=True))
        click.echo(summary_table(results))
        title = f"udfdask demo: three UDFs, one pass over {ny * nx} frames"
        save_figure(plot, draw_all(results, title), overwrite=overwrite)
    click.echo(f"\nwrote {plot}\n\nThe same in Python:\n")
    click.echo(textwrap.indent(SAME_IN_PYTHON, "  "))
    click.echo(NEXT)
