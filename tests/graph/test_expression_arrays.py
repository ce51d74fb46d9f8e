"""dask's expression arrays (`array.query-planning`): the same numbers, and one pass."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from making import LATE

SUPPORT = Path(__file__).parents[1] / "support"

ROOT = SUPPORT.parents[1]

# Four blocks; all cases but these load each of them once.
LOADS = {
    "nothing_is_computed": 0,
    "roi": 3,  # no frame of the fourth is selected
    "slices_of_results": 2,
    "lazy_parameter_of_the_data": 8,  # the mean has to be known first
    "words": 0,
}


@pytest.fixture(scope="module")
def outcomes():
    pytest.importorskip("xarray")
    pytest.importorskip("distributed")
    path = os.pathsep.join([str(SUPPORT), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", "import expression_cases; expression_cases.main()"],
        env={**os.environ, "PYTHONPATH": path, "DASK_ARRAY__QUERY_PLANNING": "True"},
        capture_output=True,
        text=True,
        timeout=LATE,
        check=False,
    )
    assert not done.returncode, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_numbers(outcomes):
    wrong = {name: right for name, (right, _) in outcomes.items() if right is not True}
    assert not wrong, "\n".join(f"{name}: {said}" for name, said in wrong.items())


def test_each_block_is_loaded_once(outcomes):
    assert len(outcomes) > 15
    assert {n: k for n, (_, k) in outcomes.items() if k != LOADS.get(n, 4)} == {}
