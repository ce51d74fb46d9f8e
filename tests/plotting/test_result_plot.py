"""`Result.plot`: what is computed, what is drawn, and what is refused before."""

import re
import subprocess
import sys

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import udfdask as ud
from picture_udfs import ManyUDF, drawn
from suites import examples
from udfdask.analyses import integrated_dpc, strain_map
from udfdask.demo import PhaseObject
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import CoMUDF, StdDevUDF, SumSigUDF, SumUDF

pytest.importorskip("matplotlib", reason="matplotlib is in the plot extra")

from matplotlib.colors import rgb_to_hsv

from udfdask.plotting import Panel, draw
from udfdask.plotting.colors import longest_shown, vector_colors

DATA = np.random.default_rng(1).integers(0, 50, size=(5, 6, 8, 9)).astype("float32")
X = da.from_array(DATA, chunks=(2, 3, 8, 9))


NM = tuple(ud.Axis(name=n, unit="nm", scale=scale) for n, scale in (("y", 0.5), ("x", 0.25)))


def panel(values, axes=NM, **kwargs):
    return Panel(title="t", values=np.asarray(values), axes=axes[-np.ndim(values) :], **kwargs)


@pytest.mark.parametrize("computed", [True, False])
def test_every_kind_is_drawn(computed):
    result = ud.run_udf(X, ManyUDF())
    figure = (result.compute() if computed else result).plot()
    found = drawn(figure)
    waves = ["wave, amplitude", "wave, phase"]
    assert list(found) == ["image", "vector", *waves, "pattern"]
    np.testing.assert_allclose(found["image"], DATA.sum(axis=(2, 3)))
    np.testing.assert_allclose(found["pattern"], DATA.sum(axis=(0, 1)))
    assert figure.get_suptitle() == "ManyUDF"


@settings(max_examples=examples(15), deadline=None)
@given(data=st.data())
def test_any_chunks_and_roi_give_the_picture_of_the_whole(data):
    chunks = tuple(data.draw(st.integers(1, n)) for n in DATA.shape)
    roi = np.array(data.draw(st.lists(st.booleans(), min_size=30, max_size=30))).reshape(5, 6)
    figure = ud.run_udf(da.from_array(DATA, chunks=chunks), SumSigUDF(), roi=roi).plot()
    expected = np.where(roi, DATA.sum(axis=(2, 3)), np.nan)
    np.testing.assert_allclose(drawn(figure)["intensity"], expected)


def test_objects_are_drawn_by_functions():
    result = ud.run_udf(X, ManyUDF())
    figure = result.plot(("thing", lambda a: np.vectorize(len)(a) + 1))
    np.testing.assert_array_equal(drawn(figure)["thing"], np.ones((5, 6)))
    with pytest.raises(ud.ArgumentValueError, match="nothing to draw"):
        result.plot(("thing", lambda a: a))


def test_a_computed_result_is_not_computed_again():
    done = ud.run_udf(X, StdDevUDF()).compute()
    with raise_if_dask_computes():
        assert list(drawn(done.plot(["mean", ("var", np.sqrt)]))) == ["mean", "sqrt(var)"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"names": "nope"}, "names asks for 'nope', which is not one of the results ['image'"),
        ({"vmin": 2, "vmax": 2}, "vmin=2 must be smaller than vmax=2"),
        ({"cmap": "blue and red"}, "list(matplotlib.colormaps)"),
    ],
)
def test_mistakes_are_found_before_anything_is_computed(arguments, message):
    result = ud.run_udf(X, ManyUDF())
    with raise_if_dask_computes(), pytest.raises(ud.UDFError, match=re.escape(message)):
        result.plot(**arguments)


def test_axes_are_labelled():
    axes = [ud.Axis(name=n, unit="nm", scale=0.5) for n in "yx"]
    axes += [ud.Axis(name=n, unit="1/nm") for n in ("ky", "kx")]
    total, sums = ud.run_udf(X, [SumUDF(), SumSigUDF()])
    labeled = ud.run_udf(X, [SumUDF(), SumSigUDF()], axes=axes)
    figures = [r.plot(title="mine") for r in labeled]
    assert [f.axes[0].get_xlabel() for f in figures] == ["kx (1/nm)", "x (nm)"]
    assert figures[1].axes[0].images[0].get_extent() == [-0.25, 2.75, 2.25, -0.25]
    assert figures[0].get_suptitle() == "mine"
    unnamed = [r.plot().axes[0].get_ylabel() for r in (total, sums)]
    assert unnamed == ["sig_y (pixels)", "y (pixels)"]


def test_spectra_and_scans_of_one_dimension_are_lines():
    spectra = da.from_array(DATA.reshape(30, 72), chunks=(7, 72))
    axes = [ud.Axis(name="x"), ud.Axis(name="E", unit="eV", scale=2)]
    total, sums = ud.run_udf(spectra, [SumUDF(), SumSigUDF()], sig_dims=1, axes=axes)
    (line,) = total.plot().axes
    np.testing.assert_allclose(line.lines[0].get_xdata(), 2 * np.arange(72))
    np.testing.assert_allclose(line.lines[0].get_ydata(), DATA.reshape(30, 72).sum(axis=0))
    assert line.get_xlabel() == "E (eV)"
    assert sums.plot().axes[0].lines[0].get_ydata().shape == (30,)


def test_pyplot_keeps_no_figure_where_there_are_no_windows():
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    ud.run_udf(X, SumUDF()).plot()
    assert plt.get_fignums() == before


def test_two_maps_have_the_limits_and_colors_that_one_asks_for():
    totals = ud.compute(*ud.run_udf(X, [SumSigUDF(), SumSigUDF()], roi=np.ones((5, 6), bool)))
    images = [each.plot(vmin=-5, vmax=7000, cmap="viridis").axes[0].images[0] for each in totals]
    assert [one.get_clim() for one in images] == [(-5, 7000)] * 2
    assert [one.get_cmap().name for one in images] == ["viridis"] * 2


@pytest.mark.parametrize(
    ("given", "limits"),
    [
        ({}, (-1, 1)),
        ({"vmax": 0.02}, (-0.02, 0.02)),
        ({"vmin": -3}, (-3, 3)),
        ({"vmin": 0}, (0, 1)),
        ({"vmin": 0.1}, (0.1, 1)),
        ({"vmax": 0}, (-1, 0)),
        ({"vmin": 0, "vmax": 9}, (0, 9)),
    ],
)
def test_values_around_zero_stay_around_zero(given, limits):
    values = np.linspace(-1, 1, 30).reshape(5, 6)
    assert draw([panel(values, style="signed", **given)]).axes[0].images[0].get_clim() == limits


def test_limits_on_a_logarithmic_scale():
    """Only zeros, which have no place on it, need room below the smallest value."""
    values = np.linspace(900, 1000, 30).reshape(5, 6)

    def limits(values, **given):
        one = panel(values, style="pattern", log=True, **given)
        return draw([one]).axes[0].images[0].get_clim()

    assert limits(values) == (900, 1000)
    assert limits(np.where(values < 950, 0, values))[0] < 500
    assert limits(values, vmin=910, vmax=950) == (910, 950)
    assert limits(values, vmin=2000) == (2000, 4000)
    low, high = limits(values, vmax=1e-3)
    assert 0 < low < high == 1e-3


def test_the_pictures_of_a_center_of_mass():
    center = ud.run_udf(X, CoMUDF()).compute()
    assert list(drawn(center.plot())) == ["field", "magnitude"]
    assert list(drawn(center.plot(["divergence"]))) == ["divergence"]


@pytest.mark.full
@pytest.mark.parametrize("log", [True, False])
@pytest.mark.parametrize(
    "values", [np.zeros((2, 3)), np.full((2, 3), np.nan), np.full((2, 3), 7.0), [[np.inf, 1.0]]]
)
def test_values_without_a_range_are_drawn(values, log, tmp_path):
    figure = draw([panel(values, log=log), panel(np.ravel(values), log=log)])
    figure.savefig(tmp_path / "a.png", dpi=40)
    norm = figure.axes[0].images[0].norm
    assert norm.vmin < norm.vmax


@pytest.mark.parametrize(("style", "low"), [("scan", 0.0), ("signed", -1.0)])
@pytest.mark.parametrize("n", [16, 50])
def test_a_hot_pixel_does_not_hide_the_rest(style, low, n):
    values = np.random.default_rng(1).uniform(low, 1, (n, n))
    values[7, 7] = 1e6
    assert draw([panel(values, style=style)]).axes[0].images[0].norm.vmax <= 1.0


def test_a_phase_is_gray_whatever_its_signs():
    found = integrated_dpc(PhaseObject(nav_shape=(9, 8), sig_shape=(32, 32), pixel=2)).compute()
    image = found.plot().axes[0].images[0]
    assert image.get_cmap().name == "gray"
    assert image.get_clim() == (found["phase"].min(), found["phase"].max())
    assert image.colorbar.ax.get_ylabel() == "rad"


def test_strain_is_in_percent_around_zero():
    lattices = np.tile(16 * np.eye(2), (2, 4, 1, 1))
    lattices[:, 2:] /= (1, 1.02)
    found = strain_map(lattices, reference=np.s_[:, :2]).compute()
    figure = found.plot()
    np.testing.assert_allclose(drawn(figure)["exx"], found["exx"])  # limits are in its unit
    image = figure.axes[0].images[0]
    assert image.get_clim() == pytest.approx((-0.02, 0.02))
    assert image.get_cmap().name == "RdBu_r"
    line = strain_map(lattices[0], reference=lattices[0, 0]).plot("exx")
    for axes in (image.colorbar.ax, *line.axes):
        axes.figure.canvas.draw()
        texts = [text.get_text().replace("\N{MINUS SIGN}", "-") for text in axes.get_yticklabels()]
        np.testing.assert_allclose(np.array(texts, float), 100 * axes.get_yticks(), atol=0.06)
        assert axes.get_ylabel() == "%"


def test_only_axes_of_one_unit_keep_the_proportions():
    energy = (NM[0], ud.Axis(name="E", unit="keV"))
    assert draw([panel(np.eye(3))]).axes[0].get_aspect() == 1.0
    assert draw([panel(np.eye(3), axes=energy)]).axes[0].get_aspect() == "auto"
    assert draw([panel(np.ones((2, 90)))]).axes[0].get_aspect() == "auto"


def test_several_lines_have_the_labels_of_their_axis():
    axes = (NM[1], ud.Axis(name="region", labels=("inside", "outside")))
    values = np.arange(10.0).reshape(5, 2)
    (shown,) = draw([Panel(title="two", values=values, axes=axes, style="lines")]).axes
    assert [text.get_text() for text in shown.get_legend().get_texts()] == ["inside", "outside"]
    for line, own in zip(shown.lines, values.T, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), own)


@pytest.mark.parametrize(("shape", "axes"), [((2, 3, 4), NM), ((2, 3), NM[:1]), ((), ())])
def test_a_panel_that_is_no_image_and_no_line(shape, axes):
    wrong = Panel(title="odd", values=np.zeros(shape), axes=axes)
    with pytest.raises(ud.ArgumentValueError, match="'odd' must be an image or a line"):
        draw([wrong])


def test_a_missing_matplotlib_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(
        ImportError, match=r'drawing needs matplotlib.*pip install "udfdask\[plot\]"'
    ):
        draw([panel(np.eye(3))])


# Vectors as colors.


@given(angle=st.floats(-np.pi, np.pi), length=st.floats(0.1, 1.0))
def test_hue_is_direction_and_brightness_is_length(angle, length):
    vector = length * np.array([np.sin(angle), np.cos(angle)])
    color = vector_colors(vector, 1.0)
    hue, saturation, value = rgb_to_hsv(color[:3])
    turns = (hue - angle / (2 * np.pi)) % 1.0
    assert min(turns, 1 - turns) < 1e-6
    assert saturation == pytest.approx(1)
    assert value == pytest.approx(length)
    assert color[3] == 1


@pytest.mark.parametrize("bad", [(np.nan, 1.0), (1.0, np.nan), (np.inf, 0.0)])
def test_what_is_missing_is_transparent(bad):
    colors = vector_colors(np.array([bad, (0.0, 1.0)]), 1.0)
    assert colors[:, 3].tolist() == [0, 1]
    assert np.isfinite(colors).all()


def test_the_longest_vector_is_brightest_but_not_a_broken_one():
    field = np.zeros((40, 40, 2))
    field[..., 1] = np.linspace(0, 2, 40)
    assert longest_shown(field) == pytest.approx(2)
    field[3, 3] = 1e6, 0
    assert longest_shown(field) == pytest.approx(2)
    field[:, :20] = np.nan
    assert longest_shown(field) == pytest.approx(2)


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
