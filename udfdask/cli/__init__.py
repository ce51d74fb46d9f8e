"""The command line: `udfdask run`, `explain`, `udfs` and `demo`."""

from __future__ import annotations

from pathlib import Path

import click

from udfdask.cli.commands import explain, run, udfs
from udfdask.cli.run_demo import demo

__all__ = ["main"]


class _Commands(click.Group):
    """The commands, with a hint for a user who has typed a file in place of a command."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is typed first, or raise UsageError."""
        path = Path(args[0])
        if path.name not in self.commands and (path.suffix or path.name != args[0]):
            ctx.fail(f"there is no command {args[0]!r}; did you mean: udfdask run {args[0]}")
        return super().resolve_command(ctx, args)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="udfdask", message="udfdask %(version)s")
def main() -> None:
    """Run user-defined functions (UDFs) over detector frames.

    \b
    udfdask demo                  an example that needs no file
    udfdask udfs                  the ready-made UDFs
    udfdask run FILE --udf sum    run one of them on a file
    udfdask run --help            kinds of files, all options, examples
    """  # noqa: D301, click wants the character


main.add_command(run)
main.add_command(explain)
main.add_command(udfs)
main.add_command(demo)
