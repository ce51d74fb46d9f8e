"""Data far larger than memory stream through: peak memory is that of a few chunks.

The script asv_bench/memory.py does the same with 20 GB.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from making import LATE

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "asv_bench" / "memory.py"


@pytest.mark.skipif(sys.platform == "win32", reason="the resource module is POSIX only")
@pytest.mark.parametrize("layout", ["frames", "signal"])
def test_peak_is_below_a_gigabyte(layout):
    """SumUDF and SumSigUDF over 6 GB in 64 MiB chunks, two threads."""
    start = f"import runpy, sys; sys.path.insert(0, {str(ROOT)!r}); sys.argv = sys.argv[1:]; "
    run = f"runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", start + run, "memory.py", "--gigabytes", "6", "--layout", layout],
        capture_output=True,
        text=True,
        check=False,
        timeout=LATE,
    )
    assert done.returncode == 0, done.stderr
    found = re.match(r"peak (\d+) MB, \d+ MB before, ([\d.]+) GB in", done.stdout)
    assert found, done.stdout
    assert float(found[2]) > 5.5
    assert int(found[1]) < 1000, done.stdout
