"""The scripts of the gallery run as they are and make one picture each; their links hold."""

import pydoc
import re
from pathlib import Path

import pytest

from making import run_python

GALLERY = Path(__file__).resolve().parents[2] / "docs" / "gallery"
SCRIPTS = sorted(GALLERY.glob("**/*.py"))

# Pyplot's figures, and those that the script has. A figure with one color only is empty.
RUN = """
import os, runpy, sys
names = runpy.run_path(sys.argv[1], run_name="__main__")
import matplotlib.pyplot as plt, numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
figures = [plt.figure(number) for number in plt.get_fignums()]
figures += [v for v in names.values() if isinstance(v, Figure) and not any(v is f for f in figures)]
assert len(figures) == 1, figures
(figure,) = figures
canvas = FigureCanvasAgg(figure)
canvas.draw()
pixels = np.asarray(canvas.buffer_rgba())[..., :3]
assert (pixels != pixels[0, 0]).any(axis=-1).mean() > 0.1, "the picture is nearly empty"
drawn = [axes for axes in figure.axes if axes.has_data()]
assert drawn, "no axes with data"
assert any(axes.get_xlabel() and axes.get_ylabel() for axes in drawn), "no labels"
assert any(axes.get_title() or axes.get_title("left") for axes in drawn), "no title"
assert not os.listdir("."), os.listdir(".")
"""


def name(path):
    return path.relative_to(GALLERY).with_suffix("").as_posix()


@pytest.fixture(params=SCRIPTS, ids=name)
def script(request):
    return request.param


def test_linked_pages_exist(script):
    pages = re.findall(r":doc:`[^<`]+<(/[^>]+)>`", script.read_text())
    missing = [page for page in pages if not (GALLERY.parent / f"{page[1:]}.md").exists()]
    assert pages
    assert not missing


def test_linked_names_exist(script):
    targets = re.findall(r":(?:class|func|meth):`(?:[^`<]*<)?~?([\w.]+)>?`", script.read_text())
    assert targets
    assert all(pydoc.locate(target) is not None for target in targets), targets


def test_each_section_has_a_place_in_the_order():
    order = re.findall(r'"gallery/(\w+)",', (GALLERY.parent / "conf.py").read_text())
    assert sorted(order) == sorted({path.parent.name for path in SCRIPTS})


@pytest.mark.full
def test_it_runs_and_makes_one_picture(script, tmp_path):
    """In an empty folder, to see what the script writes, with warnings as errors."""
    needed = re.findall(r"^(?:import|from) (\w+)", script.read_text(), re.MULTILINE)
    for module in [*needed, *(["zarr"] if "zarr" in script.read_text() else [])]:
        pytest.importorskip(module)
    folder = tmp_path / "empty"
    folder.mkdir()
    run = run_python("-W", "error", "-c", RUN, script, cwd=folder)
    assert "WARNING" not in run.stderr
