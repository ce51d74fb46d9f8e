"""`udfdask explain`: what `udfdask run` would do."""

from __future__ import annotations

import warnings

import click

from udfdask.cli.asked import Asked, takes_asked
from udfdask.cli.failures import PLANNING, plain_warnings, told_plainly
from udfdask.errors import UDFWarning
from udfdask.io.open_file import open_file
from udfdask.run.run_udf import explain as explain_run


@click.command(short_help="Say what a run would do, without running it.")
@takes_asked
def explain(asked: Asked) -> None:
    """Say what `udfdask run` would do with FILE: chunks, tasks, bytes, memory, tiles, merges.

    No frame is read.

    \b
    udfdask explain scan.mib --udf com:r=20
    udfdask explain scan.mib --udf stddev --chunks 16,-1,-1,-1 --roi 0:64,0:64
    """  # noqa: D301, click wants the character
    with plain_warnings(), told_plainly(PLANNING):
        opened = open_file(asked.file, **asked.opening)
        click.echo(asked.headline(opened))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UDFWarning)  # the plan says the same
            plan = explain_run(
                opened.array,
                list(asked.named_udfs.values()),
                sig_dims=opened.sig_dims,
                roi=asked.region(opened),
            )
        click.echo(plan)
