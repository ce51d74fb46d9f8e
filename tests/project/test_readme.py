"""The README's code runs, and shows what the front page, the demo and the project have."""

import re
import tomllib
from pathlib import Path

import pytest

import udfdask as ud
from fences import read_fences
from making import run_python
from udfdask.demo import make_recording

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
INDEX = ROOT / "docs" / "index.md"
PICTURE = ROOT / "docs" / "_static" / "demo.png"


def python_blocks(page):
    return [fence for fence in read_fences(page) if fence.language == "python"]


def test_python_blocks_run(capsys):
    names = {"__name__": "readme"}
    for block in python_blocks(README):
        # The empty lines keep the README's line numbers in a traceback.
        exec(compile("\n" * block.lineno + block.text, str(README), "exec"), names)
    assert "(16, 16) (64, 64)" in capsys.readouterr().out
    assert 0 < int(names["bright"].compute()) <= 256


def test_the_front_page_has_the_same_ten_lines():
    (same,) = python_blocks(INDEX)
    assert same.text == python_blocks(README)[0].text


@pytest.mark.full
def test_the_function_of_the_readme_draws_a_file(tmp_path):
    hs = pytest.importorskip("hyperspy.api", reason="hyperspy is in the io extra")
    (block,) = [one.text for one in python_blocks(README) if "def draw_dark_field" in one.text]
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

    run_python("-m", "udfdask", "demo", "--no-progress", "--plot", tmp_path / "now.png")
    committed, drawn = blocks(PICTURE), blocks(tmp_path / "now.png")
    assert committed.shape == drawn.shape
    difference = abs(committed - drawn)
    assert difference.mean() < 0.01
    assert (difference > 0.1).mean() < 0.01


@pytest.mark.parametrize("page", ["README.md", "docs/getting-started/install.md"])
def test_tables_of_extras_have_each_extra(page):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = set(project["optional-dependencies"]) - {"bench", "dev", "docs", "test"}
    cells = re.findall(r"\| `([a-z0-9-]+)` \|", (ROOT / page).read_text("utf-8"))
    assert sorted(cells) == sorted(wanted)
