"""Figures: what is drawn, on which scale, with which words; and nothing left in pyplot."""

import subprocess
import sys

import numpy as np
import pytest

from udfdask.errors import ArgumentValueError
from udfdask.geometry.axes import Axis
from udfdask.plotting import Panel, draw

pytestmark = pytest.mark.full

pytest.importorskip("matplotlib", reason="matplotlib is in the plot extra")

NM = (Axis(name="y", unit="nm", scale=0.5, offset=10.0), Axis(name="x", unit="nm", scale=0.25))


def panel(values, axes=NM, **kwargs):
    return Panel(title="t", values=np.asarray(values), axes=axes[-np.ndim(values) :], **kwargs)


def image_of(figure):
    return figure.axes[0].images[0]


def test_on_a_logarithmic_scale_one_count_is_not_as_dark_as_none():
    norm = image_of(draw([panel([[0.0, 1.0], [10.0, 1000.0]], log=True)])).norm
    assert norm.vmin < 1.0 < norm.vmax


@pytest.mark.parametrize("log", [True, False])
@pytest.mark.parametrize(
    "values", [np.zeros((2, 3)), np.full((2, 3), np.nan), np.full((2, 3), 7.0), [[np.inf, 1.0]]]
)
def test_values_without_a_range_are_drawn(values, log, tmp_path):
    figure = draw([panel(values, log=log), panel(np.ravel(values), log=log)])
    figure.savefig(tmp_path / "a.png", dpi=40)
    norm = image_of(figure).norm
    assert norm.vmin < norm.vmax


def test_signed_values_are_drawn_around_zero():
    norm = image_of(draw([panel([[-1.0, 0.5], [0.2, 3.0]], style="signed")])).norm
    assert norm.vmin == -norm.vmax < -2.9


def test_a_hot_pixel_does_not_hide_the_rest():
    values = np.random.default_rng(1).random((50, 50))
    values[7, 7] = 1e6
    assert image_of(draw([panel(values)])).norm.vmax <= 1.0


def test_only_axes_of_one_unit_keep_the_proportions():
    energy = (NM[0], Axis(name="E", unit="keV"))
    assert draw([panel(np.eye(3))]).axes[0].get_aspect() == 1.0
    assert draw([panel(np.eye(3), axes=energy)]).axes[0].get_aspect() == "auto"
    assert draw([panel(np.ones((2, 90)))]).axes[0].get_aspect() == "auto"


@pytest.mark.parametrize(("shape", "axes"), [((2, 3, 4), NM), ((2, 3), NM[:1]), ((), ())])
def test_a_panel_that_is_no_image_and_no_line(shape, axes):
    wrong = Panel(title="odd", values=np.zeros(shape), axes=axes)
    with pytest.raises(ArgumentValueError, match="'odd' must be an image or a line"):
        draw([wrong])


def test_a_missing_matplotlib_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(
        ImportError, match=r'drawing needs matplotlib.*pip install "udfdask\[plot\]"'
    ):
        draw([panel(np.eye(3))])


@pytest.mark.full
def test_pyplot_is_not_loaded(tmp_path):
    script = (
        "import sys, numpy as np\n"
        "from udfdask.geometry.axes import Axis\n"
        "from udfdask.plotting import Panel, draw\n"
        "p = Panel(title='t', values=np.eye(3), axes=(Axis(name='y'), Axis(name='x')))\n"
        f"draw([p]).savefig({str(tmp_path / 'a.png')!r}, dpi=40)\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    assert (tmp_path / "a.png").exists()
