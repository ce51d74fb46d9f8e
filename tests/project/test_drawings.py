"""The drawings of the documentation are what their script writes."""

import subprocess
import sys
from pathlib import Path

from making import LATE

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "drawings"


def test_the_script_writes_what_is_committed(tmp_path):
    subprocess.run([sys.executable, FOLDER / "draw.py", tmp_path], check=True, timeout=LATE)
    written = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert len(written) == 5
    assert written == {file.name: file.read_bytes() for file in FOLDER.glob("*.svg")}
