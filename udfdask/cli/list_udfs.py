"""`udfdask udfs`: what there is to run."""

from __future__ import annotations

import click

from udfdask.cli.catalogue import CATALOGUE, Entry, plain_name
from udfdask.cli.udf_option import unknown


@click.command(short_help="List the ready-made UDFs, or describe one.")
@click.argument("name", required=False)
def udfs(name: str | None) -> None:
    """List the ready-made UDFs, or describe the one called NAME: parameters and results.

    \b
    udfdask udfs
    udfdask udfs com
    """  # noqa: D301, click wants the character
    if name is None:
        width = max(map(len, CATALOGUE))
        for entry in CATALOGUE.values():
            click.echo(f"{entry.name.ljust(width)}  {entry.summary}")
        return
    found = CATALOGUE.get(plain_name(name))
    if found is None:
        raise click.BadParameter(unknown(name), param_hint="NAME")
    click.echo(_description(found))


def _description(entry: Entry) -> str:
    """Return what a user should know of a UDF."""
    parts = [f"{entry.name}: {entry.summary}", f"--udf {entry.usage}"]
    for title, heading in (("Parameters", "Parameters"), ("Notes", "Results")):
        text = entry.section(title)
        if text:
            parts.append(f"{heading}\n{'-' * len(heading)}\n{text}")
    return "\n\n".join(parts)
