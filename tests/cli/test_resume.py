"""Runs of the command line that go on after a kill or Ctrl-C, but not as other runs."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from making import LATE

ENDS = """
import os, pathlib, signal

here = pathlib.Path(__file__).parent
calls = []

def total(frame):
    calls.append(1)
    if (here / "ends").exists() and len(calls) > 20:
        end = (here / "ends").read_text()
        if end == "OSError":
            raise OSError("the disk is gone")
        os.kill(os.getpid(), getattr(signal, end))
    return float(frame.sum())
"""


@pytest.fixture
def scan(tmp_path):
    np.save(tmp_path / "scan.npy", np.random.default_rng(2).integers(0, 99, (6, 8, 5, 4)))
    (tmp_path / "ends.py").write_text(ENDS)
    return tmp_path


def run(scan, *more, end=None):
    """Run the command in a process of its own; it ends itself by a signal in the third chunk."""
    if end is not None:
        (scan / "ends").write_text(end)
    args = ["scan.npy", "--udf", "auto:f=ends:total", "--chunks", "1,8,-1,-1"]
    args += ["--scheduler", "synchronous", "--no-progress", *more]
    done = subprocess.run(
        [sys.executable, "-m", "udfdask", "run", *args],
        cwd=scan,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(scan), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
        timeout=LATE,
    )
    (scan / "ends").unlink(missing_ok=True)
    return done


pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

DONE = "2 of 6 chunks are done already: their results were saved by an earlier run"


def test_a_killed_run_goes_on(scan):
    more = ["--out", "a.npz", "--resume"]
    assert run(scan, *more, end="SIGKILL").returncode == -signal.SIGKILL
    again = run(scan, *more)
    assert again.returncode == 0, again.stderr
    assert DONE in again.stdout
    frames = np.load(scan / "scan.npy")
    np.testing.assert_array_equal(np.load(scan / "a.npz")["auto_result"], frames.sum(axis=(2, 3)))
    assert not (scan / "a.npz.cache").exists()


@pytest.mark.full
def test_a_cache_serves_a_killed_run(scan):
    more = ["--cache", "kept"]
    assert run(scan, *more, end="SIGKILL").returncode == -signal.SIGKILL
    assert DONE in run(scan, *more).stdout
    assert "6 of 6 chunks are done already" in run(scan, *more).stdout


@pytest.mark.full
@pytest.mark.parametrize(
    ("end", "code"), [("SIGINT", 1), ("SIGTERM", -signal.SIGTERM), ("OSError", 1)]
)
def test_a_run_that_ends_early_says_how_it_goes_on(scan, end, code):
    done = run(scan, "--out", "a.npz", "--resume", end=end)
    assert done.returncode == code, done.stderr
    assert f"saved in {scan / 'a.npz.cache'}: the same run, started again" in done.stderr
    assert "Traceback" not in done.stderr
    assert DONE in run(scan, "--out", "a.npz", "--resume").stdout
