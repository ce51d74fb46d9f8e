"""Memory as it is predicted, beside the peak of real runs: scripts/soak/predicted_memory.py."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from making import LATE

SCRIPT = Path(__file__).parents[2] / "scripts" / "soak" / "predicted_memory.py"
NAMES = re.findall(r"^@case\ndef (\w+)", SCRIPT.read_text(), re.MULTILINE)
BY_DEFAULT = "deviation,merge_all"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")


def measured(*arguments):
    """Return what the script prints; it fails if a prediction is too low, or 25 % too high."""
    done = subprocess.run(
        [sys.executable, SCRIPT, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=LATE,
        check=False,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_two_shapes_of_runs():
    printed = measured("--only", BY_DEFAULT, "--threads", 1)
    assert len(printed.splitlines()) == 3


@pytest.mark.full
def test_all_shapes_of_runs():
    assert len(NAMES) >= 16
    assert len(measured("--threads", 1).splitlines()) == len(NAMES) + 1


@pytest.mark.full
def test_two_threads():
    names = "sum_of_each_frame,merge_tree_of_4,merge_chain,large_nav,corrections"
    assert len(measured("--threads", 2, "--only", names).splitlines()) == 6


@pytest.mark.full
def test_on_workers():
    pytest.importorskip("distributed", reason="distributed is an extra")
    printed = measured("--cluster", "--only", "partitions,large_nav")
    assert len(printed.splitlines()) == 3
