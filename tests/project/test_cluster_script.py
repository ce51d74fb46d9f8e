"""The script of the page on clusters runs as it is, and as the page says, only with its guard."""

import subprocess
import sys
from pathlib import Path

import pytest

from fences import read_fences
from making import LATE

PAGE = Path(__file__).resolve().parents[2] / "docs" / "user-guide" / "operations" / "clusters.md"
SCRIPT = next(fence.text for fence in read_fences(PAGE) if "# script.py" in fence.text)


def test_the_script_has_its_guard():
    assert SCRIPT.endswith('if __name__ == "__main__":\n    main()\n')
    compile(SCRIPT, "script.py", "exec")


@pytest.mark.full
def test_the_script_runs(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, "script.py"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=LATE, check=False
    )
    # what distributed logs while its processes end does not count
    assert done.returncode == 0, done.stderr
    assert done.stdout == "(96, 96)\n"
    # the progress bar, at its end
    assert "100%" in done.stderr.rpartition("\r")[2]
    assert "frame/s" in done.stderr
