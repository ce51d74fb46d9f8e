import re
import subprocess
import sys
from pathlib import Path

import pytest

import udfdask as ud
from fences import read_fences
from udfdask.demo import make_recording

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
INDEX = ROOT / "docs" / "index.md"
PICTURE = ROOT / "docs" / "_static" / "demo.png"


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


def test_the_front_page_has_the_same_ten_lines():
    ten_lines, *_ = [fence.text for fence in read_fences(README) if fence.language == "python"]
    (same,) = [fence.text for fence in read_fences(INDEX) if fence.language == "python"]
    assert same == ten_lines


@pytest.mark.full
def test_the_function_of_the_readme_draws_a_file(tmp_path):
    hs = pytest.importorskip("hyperspy.api", reason="hyperspy is in the io extra")
    (block,) = [one.text for one in read_fences(README) if "def draw_dark_field" in one.text]
    signal = hs.signals.Signal2D(make_recording((6, 8), (48, 48)).compute())
    for axis, unit in zip(signal.axes_manager._axes, ["nm", "nm", "mrad", "mrad"], strict=True):
        axis.units = unit
    signal.save(tmp_path / "scan.hspy")
    names = {"ud": ud}
    exec(block, names)
    figure = names["draw_dark_field"](tmp_path / "scan.hspy")
    assert figure.axes[0].get_xlabel().endswith("(nm)")


@pytest.mark.full
def test_the_picture_is_what_the_demo_draws(tmp_path):
    """Fonts and anti-aliasing differ between versions of matplotlib: small blocks are compared."""
    from matplotlib.image import imread

    def blocks(path):
        pixels = imread(path)[..., :3]
        height, width = (size // 16 * 16 for size in pixels.shape[:2])
        return pixels[:height, :width].reshape(height // 16, 16, width // 16, 16, 3).mean((1, 3))

    command = [sys.executable, "-m", "udfdask", "demo", "--no-progress", "--plot"]
    subprocess.run([*command, tmp_path / "now.png"], check=True, capture_output=True)
    assert PICTURE.stat().st_size < 200_000
    committed, drawn = blocks(PICTURE), blocks(tmp_path / "now.png")
    assert committed.shape == drawn.shape
    difference = abs(committed - drawn)
    assert difference.mean() < 0.01
    assert (difference > 0.1).mean() < 0.01


@pytest.mark.parametrize("page", [README, INDEX], ids=lambda page: page.name)
def test_pages_show_the_picture(page):
    (name,) = re.findall(r"[\w./]*\.png", page.read_text(encoding="utf-8"))
    assert (page.parent / name).resolve() == PICTURE
