"""Notebooks are valid files; test_tutorials_of_data.py and test_tutorials_of_udfs.py run them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kernels import EXECUTE, texts

pytestmark = pytest.mark.full

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_format_is_valid(path):
    """Each cell has an id: Jupyter warns about cells without one, and will refuse them."""
    nbformat = pytest.importorskip("nbformat", reason="nbclient brings it")
    notebook = json.loads(path.read_text())
    nbformat.validate(notebook)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) >= (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    assert all(not cell.get("outputs") for cell in notebook["cells"])


WITHOUT_WIDGETS = """
import sys
sys.modules["ipywidgets"] = None  # as if it were not installed
import udfdask as ud
from udfdask.demo import make_recording
from udfdask.udfs import SumUDF
scan = make_recording(nav_shape=(4, 6), sig_shape=(32, 32))
for _ in range(2):
    ud.run_udf(scan, SumUDF()).compute(progress=True)
"""


def test_a_kernel_without_ipywidgets_shows_a_line_of_text(tmp_path):
    nbformat = pytest.importorskip("nbformat", reason="nbclient brings it")
    pytest.importorskip("nbclient", reason="nbclient is in the test extra")
    pytest.importorskip("ipykernel", reason="ipykernel is in the test extra")
    cell = nbformat.v4.new_code_cell(WITHOUT_WIDGETS)
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "bar.ipynb")
    command = [sys.executable, "-c", EXECUTE, tmp_path / "bar.ipynb", tmp_path / "done.ipynb"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    (done,) = json.loads((tmp_path / "done.ipynb").read_text())["cells"]
    shown = texts(done["outputs"])
    bars = [line.split("\r")[-1] for line in shown.strip().split("\n")]
    assert len(bars) == 2
    assert all("24.0/24.0" in bar for bar in bars)
    assert "Warning" not in shown
