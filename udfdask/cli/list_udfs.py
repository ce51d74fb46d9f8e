"""The command `udfdask udfs`."""

from __future__ import annotations

import click

from udfdask.cli.udf_option import CATALOG, find_udf


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
        for each in CATALOG.values():
            summary = each.description.partition("\n")[0]
            click.echo(f"{each.name.ljust(width)}  {summary}")
        return
    try:
        entry, *_ = find_udf(name)
    except ValueError as error:
        raise click.BadParameter(f"{name!r}: {error}", param_hint="NAME") from error
    click.echo(f"{entry.name}: --udf {entry.usage}\n\n{entry.description}".rstrip())
