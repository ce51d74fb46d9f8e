"""The notebooks run from top to bottom and say what they compute."""

import base64
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from udfdask.demo import make_recording
from udfdask.plotting.drawing import MISSING

pytestmark = pytest.mark.full

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

# In a process of its own, because Jupyter's own warnings are not ours.
EXECUTE = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
nbformat.write(notebook, sys.argv[2])
"""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_code_cells_run_in_order(path, capsys):
    cells = json.loads(path.read_text())["cells"]
    names: dict[str, object] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert capsys.readouterr().out
    assert all(not cell.get("outputs") for cell in cells)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_format_is_valid(path):
    """Each cell has an id: Jupyter warns about cells without one, and will refuse them."""
    nbformat = pytest.importorskip("nbformat", reason="nbclient brings it")
    notebook = json.loads(path.read_text())
    nbformat.validate(notebook)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) >= (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)


def test_first_steps_are_right():
    cells = json.loads((FOLDER / "first_steps.ipynb").read_text())["cells"]
    names: dict[str, object] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    frames = make_recording(nav_shape=(16, 24), sig_shape=(48, 48)).compute()
    np.testing.assert_array_equal(names["total"]["intensity"], frames.sum(axis=(0, 1)))
    np.testing.assert_array_equal(names["peak"]["peak"], frames.max(axis=(2, 3)))


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """The outputs of the cells of the notebook on watching, executed in a kernel."""
    pytest.importorskip("nbclient", reason="nbclient is in the test extra")
    pytest.importorskip("ipykernel", reason="ipykernel is in the test extra")
    done = tmp_path_factory.mktemp("notebook") / "watching.ipynb"
    # the backend of matplotlib is the one that kernels choose
    environment = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
    command = [sys.executable, "-c", EXECUTE, str(FOLDER / "watching.ipynb"), str(done)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    cells = json.loads(done.read_text())["cells"]
    return [cell["outputs"] for cell in cells if cell["cell_type"] == "code"]


def texts(outputs):
    return "".join("".join(one["text"]) for one in outputs if one["output_type"] == "stream")


def pictures(outputs):
    """The PNG images among outputs, shape (y, x, 4), from 0 to 1."""
    from matplotlib.image import imread

    data = [one.get("data", {}).get("image/png") for one in outputs]
    return [imread(io.BytesIO(base64.b64decode(png))) for png in data if png]


class TestInAKernel:
    def test_plans_and_results_are_tables(self, watched):
        for outputs, word in zip(watched[1:3], ("Plan", "Result of CoMUDF, lazy"), strict=True):
            (one,) = outputs
            assert word in "".join(one["data"]["text/html"])

    def test_a_live_plot_is_one_picture_that_was_replaced(self, watched):
        from matplotlib.colors import to_rgb

        (picture,) = pictures(watched[3])
        assert texts(watched[3]).strip() == "100% of the scan, 16 chunks"
        height, width = picture.shape[:2]
        assert width > 1.5 * height
        # nothing is missing any more: it is the last state that is seen
        assert not np.isclose(picture[..., :3], to_rgb(MISSING), atol=0.01).all(axis=-1).any()
        assert picture[..., :3].std() > 0.1

    def test_the_progress_bar_counts_frames(self, watched):
        # a widget where ipywidgets is installed, else a line of text
        widgets = [mime for one in watched[4] for mime in one.get("data", {}) if "widget" in mime]
        assert widgets or "768/768" in texts(watched[4])
        assert "True" in texts(watched[4])

    def test_a_figure_is_the_value_of_its_cell(self, watched):
        (picture,) = pictures(watched[5])
        assert picture[..., :3].std() > 0.1


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
