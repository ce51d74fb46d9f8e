"""The short form of scripts/soak/resume.py: kill, resume, compare."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from making import LATE

SCRIPT = Path(__file__).parents[2] / "scripts" / "soak" / "resume.py"


@pytest.mark.full
def test_a_killed_run_goes_on(tmp_path):
    pytest.importorskip("zarr")
    pytest.importorskip("distributed")
    command = [sys.executable, SCRIPT, "--kills", "3", "--seed", "5"]
    program = subprocess.run(command, capture_output=True, text=True, timeout=LATE, check=False)
    assert program.returncode == 0, program.stdout + program.stderr
    assert re.search(r'"kills": [3-9]', program.stdout.splitlines()[-1])
