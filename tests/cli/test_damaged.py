"""Damaged files and empty arguments on the command line: a readable line, and no traceback."""

import numpy as np
import pytest
from click.testing import CliRunner

from damaging import LEAVES_FILES_OPEN
from udfdask.cli import main

pytestmark = [pytest.mark.full, *LEAVES_FILES_OPEN]


VALUES = np.ones((2, 3, 8, 8), np.uint16)


def refused(*args):
    """Run a command that must fail; return what it says."""
    outcome = CliRunner().invoke(main, [str(arg) for arg in args])
    assert outcome.exit_code != 0
    assert isinstance(outcome.exception, SystemExit), outcome.exception
    assert "Aborted" not in outcome.output
    assert "Traceback" not in outcome.output
    errors = [line for line in outcome.output.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1, outcome.output
    return errors[0]


@pytest.mark.parametrize("command", ["run", "explain"])
@pytest.mark.parametrize("suffix", ["npy", "h5", "mib", "nc"])
@pytest.mark.parametrize("content", [b"", b"something else\n" * 9])
def test_damaged_files(tmp_path, command, suffix, content):
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(content)
    assert str(path) in refused(command, path)
