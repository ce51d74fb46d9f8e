"""Runs udfdask's commands as a terminal does, and reads the tables that they print."""

from click.testing import CliRunner

from udfdask.cli import main


def call(*args, code=0):
    """Run a command; what it prints, all of it on one line if it failed."""
    outcome = CliRunner().invoke(main, [str(arg) for arg in args])
    assert outcome.exit_code == code, outcome.output
    if code == 0:
        return outcome.output
    assert isinstance(outcome.exception, SystemExit)
    assert "Traceback" not in outcome.output
    return " ".join(outcome.output.split())


def tables(output):
    """The lines of all tables as lists of cells, without the headers."""
    lines = [
        [cell.strip() for cell in line.split("  ") if cell.strip()] for line in output.splitlines()
    ]
    return [line[:8] for line in lines if len(line) in (8, 9) and line[0] != "udf"]
