"""The command line as a program of its own: its streams, exit codes, clusters."""

import contextlib
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from commands import call, tables
from making import LATE

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


WAITS = """
import pathlib

here = pathlib.Path(__file__).parent

def wait(frame):
    (here / "started").write_text("a task runs")
    return float((here / "never").read_text())
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "scan.npy"
    np.save(path, np.random.default_rng(5).integers(0, 1000, (6, 8, 10, 12)).astype(np.uint16))
    return path


def run(*args):
    command = [sys.executable, "-m", "udfdask", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=LATE)


def test_a_bar_goes_to_standard_error_and_results_to_standard_output(file, tmp_path):
    done = run(
        "run", file, "--udf", "com:r=4", "--chunks", "2,8,-1,-1", "--out", tmp_path / "a.npz"
    )
    assert done.returncode == 0, done.stderr
    assert "48.0/48.0" in done.stderr
    assert "11.25 kiB of 11.25 kiB" in done.stderr
    assert "frame/s" not in done.stdout
    assert tables(done.stdout)[0][:3] == ["com", "raw_com[y]", "nav"]
    with np.load(tmp_path / "a.npz") as arrays:
        assert arrays["com_field"].shape == (6, 8, 2)


def test_no_bar(file):
    done = run("run", file, "--no-progress", "--live")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["run", "{}", "--udf", "com:radius=3"], 2, "keyword argument 'radius'"),
        (["run", "{}", "--udf", "com:cx=99,r=3"], 1, "Error: "),
    ],
)
def test_mistakes(file, args, code, message):
    done = run(*(arg.format(file) for arg in args))
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there is no os.kill for Ctrl-C")
@pytest.mark.parametrize("more", [[], ["--live"]], ids=["plain", "live"])
def test_ctrl_c(file, tmp_path, more):
    (tmp_path / "mine.py").write_text(INTERRUPTS)
    udf = f"auto:f={tmp_path}/mine.py:interrupt,output_shape=(),output_dtype=float64"
    # an interrupt in the middle of the start of a pool's thread would keep Python from ending
    done = run("run", file, "--udf", udf, "--scheduler", "synchronous", *more)
    assert done.returncode == 1
    assert "Aborted!" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there are no signals that ask to end")
@pytest.mark.parametrize("more", [[], ["--live"]], ids=["plain", "live"])
@pytest.mark.parametrize(
    ("scheduler", "number"),
    [("processes", "SIGTERM"), ("processes", "SIGHUP"), ("threads", "SIGTERM")],
)
def test_asked_to_end_no_process_is_left(file, tmp_path, scheduler, number, more):
    (tmp_path / "mine.py").write_text(WAITS)
    for name in ("started", "never"):
        os.mkfifo(tmp_path / name)
    udf = f"auto:f={tmp_path}/mine.py:wait,output_shape=(),output_dtype=float64"
    command = [sys.executable, "-m", "udfdask", "run", file, "--udf", udf, "--scheduler", scheduler]
    with subprocess.Popen(
        [*command, *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        try:
            assert (tmp_path / "started").read_text() == "a task runs"
            running.send_signal(getattr(signal, number))
            # to the end of what all processes write that have been started
            _, errors = running.communicate(timeout=LATE)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
    assert running.returncode == -getattr(signal, number)
    assert "Traceback" not in errors


@pytest.mark.parametrize("more", [[], ["--live"]], ids=["plain", "live"])
def test_a_cluster_by_its_address(file, client, more):
    options = ["--scheduler", client.scheduler.address, "--chunks", "2,8,-1,-1", "--udf", "stddev"]
    output = call("run", file, *options, *more)
    assert "48.0/48.0" in output
    values = np.load(file)
    (line,) = [line for line in tables(output)[-6:] if line[1] == "mean"]
    assert float(line[-1]) == pytest.approx(values.mean(axis=(0, 1)).max(), rel=1e-3)
