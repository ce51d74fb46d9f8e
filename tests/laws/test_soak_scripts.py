"""Short forms of scripts/soak: killed workers, more data than memory, many chunks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from making import LATE

SOAK = Path(__file__).parents[2] / "scripts" / "soak"

pytestmark = pytest.mark.full


def run(script, *arguments):
    """Return what a script prints; it must end by itself and without an error."""
    pytest.importorskip("distributed")
    program = subprocess.run(
        [sys.executable, SOAK / script, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=LATE,
        check=False,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert program.returncode == 0, program.stdout + program.stderr
    return program.stdout


def test_killed_workers():
    printed = run("killed_workers.py", "--repeats", 2, "--chunks", 500, "--kills", 2)
    assert printed.splitlines()[-1] == "2 runs with 2 killed workers each: all equal"


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory from /proc")
def test_more_data_than_memory():
    printed = run("beyond_memory.py", "--gigabytes", 4, "--limit", "1GB")
    assert printed.splitlines()[-1] == "all values are right"


@pytest.mark.skipif(sys.platform != "linux", reason="reads the use of memory from /proc")
def test_many_chunks(tmp_path):
    """A chunk has at most 1.5 times the tasks and bytes of dask's own sum, at any number."""
    saved = tmp_path / "found.jsonl"
    run("many_chunks.py", "--contestants", "dask; SumUDF", "--chunks", "100,400", "--save", saved)
    lines = [json.loads(line) for line in saved.read_text().splitlines()]
    found = {(line["contestant"], line["n"]): line for line in lines}
    for what in ("tasks", "sent"):
        dask, ours = (
            found[contestant, 400][what] - found[contestant, 100][what]
            for contestant in ("dask", "SumUDF")
        )
        assert min(line[what] for line in lines) > 0
        assert ours <= 1.5 * dask  # a heartbeat has more bytes than these chunks of ours


@pytest.mark.skipif(sys.platform != "linux", reason="reads the use of memory from /proc")
def test_a_cluster_that_cannot_start_is_an_error(tmp_path):
    """A worker that ends at once: the script says so, with the worker's last words."""
    (tmp_path / "distributed.yaml").write_text(
        "distributed:\n  worker:\n    preload: no_such_module"
    )
    program = subprocess.run(
        [sys.executable, SOAK / "many_chunks.py", "--chunks", "10", "--contestants", "dask"],
        capture_output=True,
        text=True,
        timeout=LATE,
        check=False,
        env={**os.environ, "DASK_CONFIG": str(tmp_path)},
    )
    assert program.returncode == 1
    assert "ended with 1" in program.stderr
    assert "no_such_module" in program.stderr
