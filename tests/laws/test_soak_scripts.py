"""Short forms of scripts/soak: killed workers and runs, more data than memory, predicted memory."""

import json
import re
import sys
from pathlib import Path

import pytest

from making import run_python

SOAK = Path(__file__).parents[2] / "scripts" / "soak"

full = pytest.mark.full
reads_proc = pytest.mark.skipif(sys.platform != "linux", reason="reads the memory from /proc")


def run(script, *arguments):
    """Return the lines that a script prints; it must end by itself and without an error."""
    pytest.importorskip("distributed")
    program = run_python(SOAK / script, *arguments, env={"PYTHONWARNINGS": "ignore"})
    return program.stdout.splitlines()


@full
def test_killed_workers():
    printed = run("killed_workers.py", "--repeats", 2, "--chunks", 500, "--kills", 2)
    assert printed[-1] == "2 runs with 2 killed workers each: all equal"


@full
def test_a_killed_run_goes_on():
    pytest.importorskip("zarr")
    printed = run("resume.py", "--kills", 3, "--seed", 5)
    assert re.search(r'"kills": [3-9]', printed[-1])


@full
@reads_proc
def test_more_data_than_memory():
    printed = run("beyond_memory.py", "--gigabytes", 4, "--limit", "1GB")
    assert printed[-1] == "all values are right"


@full
@reads_proc
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


TWO_THREADS = "sum_of_each_frame,merge_tree_of_4,merge_chain,large_nav,corrections"


@reads_proc
@pytest.mark.parametrize(
    ("arguments", "n_cases"),
    [
        ("--threads 1 --only deviation,merge_all", 2),
        pytest.param("--threads 1", 25, marks=full),
        pytest.param(f"--threads 2 --only {TWO_THREADS}", 5, marks=full),
        pytest.param("--cluster --only partitions,large_nav", 2, marks=full),
    ],
)
def test_predicted_memory(arguments, n_cases):
    """The script fails if a run needs more than predicted, or less than half of it."""
    lines = run("predicted_memory.py", *arguments.split())
    assert len(lines) == n_cases + 1
