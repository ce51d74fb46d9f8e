"""`Result.plot`: what is computed, what is drawn, and what is refused before."""

import re

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import udfdask as ud
from picture_udfs import ManyUDF
from suites import examples
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import CoMUDF, StdDevUDF, SumSigUDF, SumUDF

pytest.importorskip("matplotlib", reason="matplotlib is in the plot extra")


from udfdask.plotting import Panel, draw

DATA = np.random.default_rng(1).integers(0, 50, size=(5, 6, 8, 9)).astype("float32")
X = da.from_array(DATA, chunks=(2, 3, 8, 9))


def images(figure):
    """Drawn values by title."""
    return {
        axes.get_title("left"): np.ma.filled(axes.images[0].get_array(), np.nan)
        for axes in figure.axes
        if axes.images
    }


@pytest.mark.parametrize("computed", [True, False])
def test_every_kind_is_drawn(computed):
    result = ud.run_udf(X, ManyUDF())
    figure = (result.compute() if computed else result).plot()
    drawn = images(figure)
    waves = ["wave, amplitude", "wave, phase"]
    assert list(drawn) == ["image", "vector", *waves, "pattern"]
    np.testing.assert_allclose(drawn["image"], DATA.sum(axis=(2, 3)))
    np.testing.assert_allclose(drawn["pattern"], DATA.sum(axis=(0, 1)))
    assert figure.get_suptitle() == "ManyUDF"


@settings(max_examples=examples(15), deadline=None)
@given(data=st.data())
def test_any_chunks_and_roi_give_the_picture_of_the_whole(data):
    chunks = tuple(data.draw(st.integers(1, n)) for n in DATA.shape)
    roi = np.array(data.draw(st.lists(st.booleans(), min_size=30, max_size=30))).reshape(5, 6)
    figure = ud.run_udf(da.from_array(DATA, chunks=chunks), SumSigUDF(), roi=roi).plot()
    expected = np.where(roi, DATA.sum(axis=(2, 3)), np.nan)
    np.testing.assert_allclose(images(figure)["intensity"], expected)


def test_objects_are_drawn_by_functions():
    result = ud.run_udf(X, ManyUDF())
    figure = result.plot(("thing", lambda a: np.vectorize(len)(a) + 1))
    np.testing.assert_array_equal(images(figure)["thing"], np.ones((5, 6)))
    with pytest.raises(ud.ArgumentValueError, match="nothing to draw"):
        result.plot(("thing", lambda a: a))


def test_a_computed_result_is_not_computed_again():
    done = ud.run_udf(X, StdDevUDF()).compute()
    with raise_if_dask_computes():
        assert list(images(done.plot(["mean", ("var", np.sqrt)]))) == ["mean", "sqrt(var)"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"names": "nope"}, "names asks for 'nope', which is not one of the results ['image'"),
        ({"axes": []}, "axes must contain one Axis per dimension of the data"),
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
    drawn = [r.plot(axes=axes, title="mine") for r in (total, sums)]
    assert [f.axes[0].get_xlabel() for f in drawn] == ["kx (1/nm)", "x (nm)"]
    assert drawn[1].axes[0].images[0].get_extent() == [-0.25, 2.75, 2.25, -0.25]
    assert drawn[0].get_suptitle() == "mine"
    unnamed = [r.plot().axes[0].get_ylabel() for r in (total, sums)]
    assert unnamed == ["sig_y (pixels)", "y (pixels)"]


def test_spectra_and_scans_of_one_dimension_are_lines():
    spectra = da.from_array(DATA.reshape(30, 72), chunks=(7, 72))
    total, sums = ud.run_udf(spectra, [SumUDF(), SumSigUDF()], sig_dims=1)
    (line,) = total.plot(axes=[ud.Axis(name="x"), ud.Axis(name="E", unit="eV", scale=2)]).axes
    np.testing.assert_allclose(line.lines[0].get_xdata(), 2 * np.arange(72))
    np.testing.assert_allclose(line.lines[0].get_ydata(), DATA.reshape(30, 72).sum(axis=0))
    assert line.get_xlabel() == "E (eV)"
    assert sums.plot().axes[0].lines[0].get_ydata().shape == (30,)


def test_pyplot_keeps_no_figure_where_there_are_no_windows():
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    ud.run_udf(X, SumUDF()).plot()
    assert plt.get_fignums() == before


def first_image(figure):
    return figure.axes[0].images[0]


def test_two_maps_have_the_limits_and_colors_that_one_asks_for():
    totals = ud.compute(*ud.run_udf(X, [SumSigUDF(), SumSigUDF()], roi=np.ones((5, 6), bool)))
    drawn = [first_image(each.plot(vmin=-5, vmax=7000, cmap="viridis")) for each in totals]
    assert [one.get_clim() for one in drawn] == [(-5, 7000)] * 2
    assert [one.get_cmap().name for one in drawn] == ["viridis"] * 2


@pytest.mark.parametrize(
    ("given", "limits"),
    [
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
    axes = (ud.Axis(name="y"), ud.Axis(name="x"))
    panel = Panel(title="strain", values=values, axes=axes, style="signed", **given)
    assert first_image(draw([panel])).get_clim() == limits


def test_limits_on_a_logarithmic_scale():
    """Only zeros, which have no place on it, need room below the smallest value."""
    axes = (ud.Axis(name="y"), ud.Axis(name="x"))
    values = np.linspace(900, 1000, 30).reshape(5, 6)

    def limits(values, **given):
        panel = Panel(title="t", values=values, axes=axes, style="pattern", log=True, **given)
        return first_image(draw([panel])).get_clim()

    assert limits(values) == (900, 1000)
    assert limits(np.where(values < 950, 0, values))[0] < 500
    assert limits(values, vmin=910, vmax=950) == (910, 950)
    assert limits(values, vmin=2000) == (2000, 4000)
    low, high = limits(values, vmax=1e-3)
    assert 0 < low < high == 1e-3


def test_the_pictures_of_a_center_of_mass():
    center = ud.run_udf(X, CoMUDF()).compute()
    assert list(images(center.plot())) == ["field", "magnitude"]
    assert list(images(center.plot(["divergence"]))) == ["divergence"]
