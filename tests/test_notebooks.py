"""The notebooks run from top to bottom and say what they compute."""

import json
from pathlib import Path

import numpy as np
import pytest

from udfdask.demo import make_recording

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_code_cells_run_in_order(path, capsys):
    cells = json.loads(path.read_text())["cells"]
    names: dict[str, object] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert capsys.readouterr().out
    assert all(not cell.get("outputs") for cell in cells)


def test_first_steps_are_right():
    cells = json.loads(NOTEBOOKS[0].read_text())["cells"]
    names: dict[str, object] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    frames = make_recording(nav_shape=(16, 24), sig_shape=(48, 48)).compute()
    np.testing.assert_array_equal(names["total"]["intensity"], frames.sum(axis=(0, 1)))
    np.testing.assert_array_equal(names["peak"]["peak"], frames.max(axis=(2, 3)))
