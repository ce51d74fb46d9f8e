"""The help of the commands describes every option once."""

import re

import click
import pytest
from click.testing import CliRunner

from udfdask.cli import main


@pytest.mark.parametrize("name", ["run", "explain"])
def test_each_option_is_described_once(name):
    text = CliRunner().invoke(main, [name, "--help"]).output
    described = re.findall(r"^  (?:-\w, )?(--[\w-]+)", text, re.MULTILINE)
    command = main.get_command(None, name)
    options = [p for p in command.params if isinstance(p, click.Option)]
    assert sorted(described) == sorted([*(option.opts[-1] for option in options), "--help"])
