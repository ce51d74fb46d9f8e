"""The session with pdb on the page about debugging happens as the page shows it."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fences import read_fences
from making import LATE

pytestmark = pytest.mark.full

PAGE = Path(__file__).resolve().parents[2] / "docs/user-guide/operations/debugging.md"
TYPED = re.compile(r"^(\(Pdb\) )(.*)\n", flags=re.MULTILINE)


def read_fence(start):
    """Return the code block of the page that begins with this text."""
    (found,) = [fence.text for fence in read_fences(PAGE) if fence.text.startswith(start)]
    return found


def test_session_with_the_debugger(tmp_path):
    (tmp_path / "contrast.py").write_text(read_fence("# contrast.py"))
    session = read_fence("> contrast.py(")
    typed = "".join(f"{line}\n" for _, line in TYPED.findall(session))
    assert typed.endswith("c\n")
    run = subprocess.run(
        [sys.executable, "contrast.py"],
        cwd=tmp_path,
        input=typed,
        capture_output=True,
        text=True,
        timeout=LATE,
        check=True,
    )
    shown = TYPED.sub(r"\1", session).replace("> contrast.py", f"> {tmp_path}/contrast.py")
    assert doctest.OutputChecker().check_output(
        shown.strip(), run.stdout.strip(), doctest.NORMALIZE_WHITESPACE
    ), run.stdout
    assert "invalid value" in run.stderr
