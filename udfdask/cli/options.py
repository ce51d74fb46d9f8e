"""Define the options of `udfdask run` and `udfdask explain`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from udfdask.cli.command_options import CommandOptions
from udfdask.cli.data_options import to_axes, to_region, to_shifts
from udfdask.cli.typed_values import (
    to_chunks,
    to_dtype,
    to_shape,
    to_size,
    to_source,
    to_storage_option,
)
from udfdask.cli.udf_option import to_udf

_OPTIONS = (
    click.argument("file", type=to_source),
    click.option(
        "--udf",
        "udfs",
        type=to_udf,
        metavar="NAME[:PARAMETER=VALUE,...]",
        multiple=True,
        show_default="sum and sumsig",
        help="UDF to run, such as com:cy=64,cx=64. Can be given several times; all UDFs share one "
        "pass. `udfdask udfs` lists them. A class in Python code is a UDF too: mine.py:Peak:r=5, "
        "or module:Class. A name of your own for the results goes in front: BF=disk:r=5.",
    ),
    click.option(
        "--sig-dims",
        type=click.IntRange(min=1),
        metavar="N",
        help="Number of dimensions of one frame: 2 for images, 1 for spectra; by default as in the "
        "file.",
    ),
    click.option(
        "--roi",
        type=to_region,
        metavar="REGION",
        help="Part of the scan: y0:y1,x0:x1, a position, or mask.npy.",
    ),
    click.option(
        "--descan",
        type=to_shifts,
        metavar="FILE[:NAME]",
        help="Shift frames back before all UDFs: an .npy file of shape (*nav, 2) in pixels, or the "
        ".npz file of an earlier run of com.",
    ),
    click.option(
        "--descan-subpixel",
        is_flag=True,
        help="Shift frames by parts of a pixel, with linear interpolation; by default, shifts are "
        "rounded.",
    ),
    click.option(
        "--chunks",
        type=to_chunks,
        metavar="CHUNKS",
        help="How much is read at a time: a size for each dimension (4,4,-1,-1; -1 is all of it), "
        "or auto, or 64MiB.",
    ),
    click.option(
        "--dataset", help="Dataset to read: a path in the file, or a signal's number or title."
    ),
    click.option(
        "--storage-option",
        "storage_options",
        type=to_storage_option,
        metavar="NAME=VALUE",
        multiple=True,
        help="Option for the server of a URL, such as anon=true. Can be given several times; a "
        "VALUE that is JSON is read as such.",
    ),
    click.option(
        "--nav-shape",
        type=to_shape,
        metavar="SHAPE",
        help="Shape of the scan in a raw file, rows and columns: 256,256.",
    ),
    click.option(
        "--sig-shape",
        type=to_shape,
        metavar="SHAPE",
        help="Shape of one frame in a raw file, rows and columns: 128,128.",
    ),
    click.option(
        "--dtype",
        type=to_dtype,
        metavar="TYPE",
        help="Type of the values in a raw file, such as uint16, or '>u2' in quotes if big-endian.",
    ),
    click.option(
        "--offset",
        type=click.IntRange(min=0),
        default=0,
        metavar="BYTES",
        help="Size of the header before the frames of a raw file.",
    ),
    click.option(
        "--axes",
        type=to_axes,
        metavar="NAME=STEP[@START],...",
        help="Axes of a file that does not describe them, one for each dimension: y=2nm,x=2nm,"
        "ky=0.4mrad,kx=0.4mrad. @START is the first value, if it is not 0.",
    ),
    click.option(
        "--sync-offset",
        type=int,
        metavar="FRAMES",
        help="Frames to skip at the start of the file; if negative, positions without a frame "
        "there. The scan of --nav-shape may then have fewer or more positions than frames.",
    ),
    click.option(
        "--merge-small",
        type=to_size("--merge-small", "64 MiB"),
        metavar="SIZE",
        help="Join neighboring small chunks into tasks of at least this size, such as 64MiB.",
    ),
    click.option(
        "--max-memory",
        type=to_size("--max-memory", "2 GB"),
        metavar="SIZE",
        help="Memory of one process, such as 2GB. A run that needs more is refused before it "
        "starts, and the message says what would fit.",
    ),
)


_SECTIONS: Mapping[str, Sequence[str]] = {
    "What to compute": ("udfs", "roi", "descan", "descan_subpixel"),
    "What FILE holds": (
        *("nav_shape", "sig_shape", "dtype", "offset"),
        *("sync_offset", "sig_dims", "axes", "dataset", "storage_options"),
    ),
    "Results": ("outs", "plot", "overwrite", "live", "every"),
}
"""Headings of the help, and the options below them; all others follow."""


class RunCommand(click.Command):
    """A command with many options."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options below headings."""
        rest = {each.name: each for each in self.get_params(ctx) if isinstance(each, click.Option)}
        sections = {
            title: [rest.pop(name) for name in names if name in rest]
            for title, names in _SECTIONS.items()
        }
        for title, params in {**sections, "How to run": list(rest.values())}.items():
            records = [param.get_help_record(ctx) for param in params]
            if rows := [record for record in records if record is not None]:
                with formatter.section(title):
                    formatter.write_dl(rows)


def with_common_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options above to a `RunCommand`, which gets them as one argument `common`."""
    names = [field.name for field in dataclasses.fields(CommandOptions)]

    @functools.wraps(command)
    def with_one_argument(**options: Any) -> None:
        values = {name: options.pop(name) for name in names}
        command(CommandOptions(**values), **options)

    decorated: Callable[..., None] = with_one_argument
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated
