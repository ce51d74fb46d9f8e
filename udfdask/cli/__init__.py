"""The command line: `udfdask run`, `explain`, `udfs` and `demo`."""

from __future__ import annotations

import click

from udfdask.cli.commands import explain, run, udfs
from udfdask.cli.run_demo import demo

__all__ = ["main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="udfdask", message="udfdask %(version)s")
def main() -> None:
    """Run user-defined functions over chunked arrays of detector frames."""


main.add_command(run)
main.add_command(explain)
main.add_command(udfs)
main.add_command(demo)
