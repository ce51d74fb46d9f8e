"""The commands in docs/user-guide/running/command-line.md run and print what the page says."""

import contextlib
import doctest
import io
import re
import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from fences import read_fences
from udfdask.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "user-guide" / "running" / "command-line.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def commands():
    for fence in read_fences(PAGE):
        if fence.language == "console":
            for part in fence.text.split("$ ")[1:]:
                command, _, printed = part.partition("\n")
                yield shlex.split(command), printed


def output_of(command):
    """What a command prints: on standard output alone, unless it fails."""
    if command[0] == "python":
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(command[2], {})
        return printed.getvalue()
    assert command[0] == "udfdask"
    outcome = CliRunner().invoke(main, command[1:])
    assert outcome.exit_code in (0, 1, 2), outcome.output
    return outcome.output if outcome.exit_code else outcome.stdout


@pytest.mark.full
def test_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for fence in read_fences(PAGE):
        if fence.language == "python":
            name = re.match(r"# (\w+\.py)\n", fence.text)[1]
            Path(name).write_text(fence.text)
    checker = doctest.OutputChecker()
    for command, printed in commands():
        got = output_of(command)
        assert checker.check_output(printed, got, FLAGS), f"{command} printed\n{got}"
