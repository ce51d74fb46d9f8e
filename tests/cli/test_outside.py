"""The command line as a program of its own: its streams, exit codes, clusters."""

import sys

import numpy as np
import pytest

from commands import call, run_program, tables

pytestmark = pytest.mark.full

INTERRUPTS = """
import os, signal

pressed = []

def interrupt(frame):
    if not pressed:
        pressed.append(True)
        os.kill(os.getpid(), signal.SIGINT)
    return 1.0
"""


def test_a_bar_goes_to_standard_error_and_results_to_standard_output(file, tmp_path):
    options = ["--udf", "com:r=4", "--chunks", "2,8,-1,-1", "--out", tmp_path / "a.npz"]
    done = run_program("run", file, *options)
    assert done.returncode == 0, done.stderr
    assert "48.0/48.0" in done.stderr
    assert "11.25 kiB of 11.25 kiB" in done.stderr
    assert "frame/s" not in done.stdout
    assert tables(done.stdout)[0][:3] == ["com", "raw_com[y]", "nav"]
    with np.load(tmp_path / "a.npz") as arrays:
        assert arrays["com_field"].shape == (6, 8, 2)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no os.kill for Ctrl-C")
@pytest.mark.parametrize("more", [[], ["--live"]], ids=["plain", "live"])
def test_ctrl_c(file, tmp_path, more):
    (tmp_path / "mine.py").write_text(INTERRUPTS)
    udf = f"auto:f={tmp_path}/mine.py:interrupt,output_shape=(),output_dtype=float64"
    # an interrupt in the middle of the start of a pool's thread would keep Python from ending
    done = run_program("run", file, "--udf", udf, "--scheduler", "synchronous", *more)
    assert done.returncode == 1
    assert "Aborted!" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_cluster_by_its_address(file, client):
    options = ["--scheduler", client.scheduler.address, "--chunks", "2,8,-1,-1", "--udf", "stddev"]
    output = call("run", file, *options)
    assert "48.0/48.0" in output
    values = np.load(file)
    (line,) = [line for line in tables(output)[-6:] if line[1] == "mean"]
    assert float(line[-1]) == pytest.approx(values.mean(axis=(0, 1)).max(), rel=1e-3)
