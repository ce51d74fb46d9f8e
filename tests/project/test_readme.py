import subprocess
import sys
from pathlib import Path

import pytest

from fences import read_fences

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"


def extract(name: str) -> subprocess.CompletedProcess[str]:
    """Run the gate's own extraction."""
    script = [sys.executable, ROOT / ".ci/readme_command.py", name]
    return subprocess.run(script, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("name", "end"), [("demo", "udfdask demo"), ("tests", "-m pytest -n 2")])
def test_command_is_one_line_of_the_readme(name, end):
    command = extract(name).stdout.removesuffix("\n")
    assert command in README.read_text(encoding="utf-8").splitlines()
    assert command.startswith("python3 -m venv .venv && ")
    assert command.endswith(end)


def test_missing_command_is_an_error():
    outcome = extract("no-such-command")
    assert outcome.returncode != 0
    assert "found 0" in outcome.stderr


def test_gate_runs_both_commands_of_the_readme():
    gate = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert 'bash -c "$demo"' in gate
    assert 'bash -c "$tests"' in gate


def test_python_blocks_run(capsys):
    blocks = [fence for fence in read_fences(README) if fence.language == "python"]
    assert blocks
    names = {"__name__": "readme"}
    for block in blocks:
        # The empty lines keep the README's line numbers in a traceback.
        exec(compile("\n" * block.lineno + block.text, str(README), "exec"), names)
    assert "(16, 16) (64, 64)" in capsys.readouterr().out
    assert 0 < int(names["bright"].compute()) <= 256
