"""Runs of the command line that go on after a kill."""

import signal
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from commands import run_program
from udfdask.cli import main

ENDS = """
import os, pathlib, signal

calls = []

def total(frame):
    calls.append(1)
    # a name that is made here: a file that the code names is an input of the UDF
    ends = pathlib.Path(__file__).with_name("ends".upper())
    if ends.exists() and len(calls) > 20:
        os.kill(os.getpid(), getattr(signal, ends.read_text()))
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
        (scan / "ENDS").write_text(end)
    args = ["scan.npy", "--udf", "auto:f=ends:total", "--chunks", "1,8,-1,-1"]
    args += ["--scheduler", "synchronous", "--no-progress", *more]
    done = run_program("run", *args, folder=scan)
    (scan / "ENDS").unlink(missing_ok=True)
    return done


pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")


@pytest.mark.parametrize("kept", [["--resume"], ["--cache", "kept"]])
def test_a_killed_run_goes_on(scan, kept):
    more = [*kept, "--out", "a.npz"]
    assert run(scan, *more, end="SIGKILL").returncode == -signal.SIGKILL
    again = run(scan, *more)
    assert "2 of 6 chunks are done already" in again.stdout, again.stderr
    frames = np.load(scan / "scan.npy")
    np.testing.assert_array_equal(np.load(scan / "a.npz")["auto_result"], frames.sum(axis=(2, 3)))
    assert not (scan / "a.npz.cache").exists()
    done = "6 of 6 chunks are done already" in run(scan, *more, "--overwrite").stdout
    assert done == ("--cache" in kept)


@pytest.mark.parametrize("arguments", [["scan.npy", "--cache", ""], [""]])
def test_an_empty_name_is_not_the_current_folder(scan, arguments, monkeypatch):
    monkeypatch.chdir(scan)
    before = sorted(scan.iterdir())
    done = CliRunner().invoke(main, ["run", *arguments])
    assert (done.exit_code, "shell variable" in done.output) == (2, True)
    assert sorted(scan.iterdir()) == before
