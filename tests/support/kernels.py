"""Run notebooks in a kernel, as Jupyter and the documentation do."""

import base64
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"

# In a process of its own, because Jupyter's own warnings are not ours.
EXECUTE = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
nbformat.write(notebook, sys.argv[2])
"""


class Page:
    """What the cells of an executed notebook show.

    Parameters
    ----------
    name : str
        Name of a notebook in notebooks/, without the ending.
    folder : Path
        Where the executed notebook is written.
    more : str
        Code that runs at the end; `values` has what it prints, one value per line.
    """

    def __init__(self, name, folder, more):
        pytest.importorskip("nbclient", reason="nbclient is in the test extra")
        pytest.importorskip("ipykernel", reason="ipykernel is in the test extra")
        notebook = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text("utf-8"))
        cell = {"cell_type": "code", "id": "more", "metadata": {}, "source": more}
        notebook["cells"].append(cell | {"execution_count": None, "outputs": []})
        source, done = folder / "source.ipynb", folder / "done.ipynb"
        source.write_text(json.dumps(notebook), "utf-8")
        # the backend of matplotlib is the one that kernels choose
        environment = {key: value for key, value in os.environ.items() if key != "MPLBACKEND"}
        command = [sys.executable, "-c", EXECUTE, str(source), str(done)]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
        cells = json.loads(done.read_text("utf-8"))["cells"]
        self.cells = [cell for cell in cells if cell["cell_type"] == "code"]
        self.values = texts(self.cells.pop()["outputs"]).splitlines()

    def shown_by(self, code):
        """The outputs of the only cell with this code."""
        (found,) = (one["outputs"] for one in self.cells if code in "".join(one["source"]))
        return found

    def all_outputs(self):
        """The outputs of all cells, in order."""
        return [output for cell in self.cells for output in cell["outputs"]]


def texts(outputs):
    """The text that was printed."""
    return "".join("".join(one["text"]) for one in outputs if one["output_type"] == "stream")


def pictures(outputs):
    """The PNG images among outputs, shape (y, x, 4), from 0 to 1."""
    from matplotlib.image import imread

    data = [one.get("data", {}).get("image/png") for one in outputs]
    return [imread(io.BytesIO(base64.b64decode(png))) for png in data if png]
