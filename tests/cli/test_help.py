"""The help of the commands: every option once, below a heading."""

import re

import click
import pytest
from click.testing import CliRunner

from udfdask.cli import main
from udfdask.cli.options import _SECTIONS


@pytest.mark.parametrize("name", ["run", "explain"])
def test_each_option_is_described_once(name):
    text = CliRunner().invoke(main, [name, "--help"]).output
    described = re.findall(r"^  (?:-\w, )?(--[\w-]+)", text, re.MULTILINE)
    options = [p for p in main.commands[name].params if isinstance(p, click.Option)]
    assert sorted(described) == sorted([*(option.opts[-1] for option in options), "--help"])
    headings = re.findall(r"^([A-Z].*):$", text, re.MULTILINE)
    results = ["Results"] if name == "run" else []
    assert headings == ["What to compute", "What FILE holds", *results, "How to run"]


def test_headings_name_options_that_exist():
    known = {param.name for param in main.commands["run"].params}
    assert not {name for names in _SECTIONS.values() for name in names} - known
