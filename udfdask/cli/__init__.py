"""The command line: `udfdask run`, `explain`, `udfs` and `demo`."""

from __future__ import annotations

from importlib import import_module

import click

__all__ = ["main"]

_MODULES = {"run": "run", "explain": "run", "udfs": "udf_option", "demo": "run_demo"}
"""The module of each command, which is imported when the command is called."""


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _MODULES:
            return None
        command: click.Command = getattr(
            import_module(f"udfdask.cli.{_MODULES[cmd_name]}"), f"{cmd_name}_command"
        )
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write nothing: the help of `main` lists the commands, and imports none of them."""


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="udfdask", message="udfdask %(version)s")
def main() -> None:
    """Run user-defined functions (UDFs) over detector frames.

    \b
    udfdask demo                  an example that needs no file
    udfdask udfs                  the ready-made UDFs
    udfdask run FILE --udf sum    run one of them on a file
    udfdask explain FILE          describe a run without running it
    udfdask run --help            kinds of files, all options, examples
    """  # noqa: D301, click wants the character
