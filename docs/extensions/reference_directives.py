"""Directives of the reference: tables of the ready-made UDFs, and the help of the command line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import click
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from udf_facts import SPARSE, UDFRow, rows
from udfdask.cli import main

WIDTH = 88


def help_of(name: str) -> str:
    """Return what a command prints for ``--help``."""
    parent = click.Context(main, info_name="udfdask", terminal_width=WIDTH)
    command = main.get_command(parent, name)
    assert command is not None
    with click.Context(command, info_name=name, parent=parent, terminal_width=WIDTH) as context:
        return command.get_help(context)


class _Table(SphinxDirective):
    """A table with a line of names at its head."""

    columns: ClassVar[tuple[str, ...]]

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        lines = [".. list-table::", "   :header-rows: 1", "   :class: ready-made", ""]
        for row in [self.columns, *self.rows()]:
            first, *rest = row
            lines += [f"   * - {first}", *(f"     - {text}" for text in rest)]
        holder = nodes.Element()
        self.state.nested_parse(StringList(lines, source="udf_table"), 0, holder)
        return holder.children

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Return the texts of each row."""
        raise NotImplementedError


class ResultsTable(_Table):
    """The results of each ready-made UDF."""

    columns = ("UDF", "result", "kind", "shape", "dtype", "unit", "plot")

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Return a row for each result."""
        for udf in rows():
            link = _link(udf)
            if not udf.results:
                yield (link, "none", *[""] * 5)
            for result in udf.results:
                dims = ", ".join(result.shape) or "()"
                unit = {None: "unknown", "": "no unit"}.get(result.unit, result.unit)
                plot = "yes" if result.plotted else ""
                name = f"``{result.name}``"
                yield link, name, result.kind, f"``{dims}``", result.dtype, str(unit), plot
                link = ""


class RunsTable(_Table):
    """How each ready-made UDF runs."""

    columns = ("UDF", "NumPy", "sparse", "CuPy", "window", "merge", "parameters with units")

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Return a row for each UDF."""
        for udf in rows():
            sparse = ", ".join(sorted({SPARSE[name] for name in udf.sparse}))
            merge = "in a tree" if udf.merges else ""
            cupy = "yes" if udf.cupy else ""
            parameters = ", ".join(f"``{name}``" for name in udf.calibrated)
            yield _link(udf), "yes", sparse, cupy, udf.window, merge, parameters


def _link(udf: UDFRow) -> str:
    """Return a link to the page of a UDF."""
    return f":py:obj:`~udfdask.udfs.{udf.name}`"


class CommandHelp(SphinxDirective):
    """A section for each command."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        return [self._section(name) for name in main.list_commands(click.Context(main))]

    def _section(self, name: str) -> nodes.Node:
        """Return the section of a command."""
        section = nodes.section(ids=[nodes.make_id(f"udfdask-{name}")])
        text = help_of(name)
        block = nodes.literal_block(text, text, language="text")
        section += [nodes.title(text=f"udfdask {name}"), block]
        return section


def setup(app: Any) -> dict[str, bool]:
    """Add the directives."""
    app.add_directive("command-help", CommandHelp)
    app.add_directive("udf-results", ResultsTable)
    app.add_directive("udf-runs", RunsTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
