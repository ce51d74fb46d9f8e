"""Profiles: a curve with its spread over the scan, and an image; scale bars."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask import Axis
from udfdask.udfs import CoMUDF, RadialProfileUDF, SumUDF

pytest.importorskip("matplotlib", reason="matplotlib is an extra")

from udfdask.errors import ArgumentValueError
from udfdask.plotting import Panel, draw
from udfdask.plotting.choose import choose

FRAMES = np.random.default_rng(0).integers(0, 50, (4, 5, 16, 16)).astype("uint16")
AXES = tuple(
    Axis(name=name, unit=unit, scale=0.5)
    for name, unit in (("y", "nm"), ("x", "nm"), ("ky", "mrad"), ("kx", "mrad"))
)


def run(udf, roi=None):
    data = da.from_array(FRAMES, chunks=(2, 5, 16, 16))
    return ud.run_udf(data, udf, axes=AXES, unit="counts", roi=roi).compute()


@pytest.mark.parametrize("roi", [None, np.s_[1:, :3]])
def test_a_profile_is_a_curve_and_an_image(roi):
    result = run(RadialProfileUDF(r=6), roi)
    (choice,) = choose(True, [result])
    curve, image = choice.panels(result[choice.name], result.valid_mask[choice.name], log=None)
    values = result["intensity"]
    assert curve.style == "profile"
    assert curve.axes[0] == result.extra_axes["intensity"][0]
    selected = values[np.isfinite(values).all(axis=2)]
    np.testing.assert_allclose(curve.values[:, 0], selected.mean(axis=0))
    np.testing.assert_allclose(curve.values[:, 1], selected.std(axis=0))
    assert image.axes == (AXES[0], result.extra_axes["intensity"][0])
    rows = slice(None) if roi is None else slice(1, None)
    np.testing.assert_allclose(image.values[rows], np.nanmean(values[rows], axis=1))
    assert np.isnan(image.values).all(axis=1).sum() == (0 if roi is None else 1)
    assert curve.label == image.label == "counts"
    figure = result.plot()
    assert figure.axes[0].get_xlabel() == "radius (mrad)"
    assert figure.axes[0].get_ylabel() == "counts"
    assert figure.axes[1].get_ylabel() == "y (nm)"


def test_the_pictures_of_a_center_of_mass():
    choices = choose(True, [run(CoMUDF())])
    assert [choice.name for choice in choices] == ["field", "magnitude"]
    assert [choice.labels.unit for choice in choices] == ["mrad", "mrad"]
    figure = run(CoMUDF()).plot(["raw_shifts", "divergence"])
    titles = [title for axes in figure.axes if (title := axes.get_title("left"))]
    assert titles == ["raw_shifts", "divergence"]


def texts(figure):
    """The texts of all scale bars."""
    boxes = [artist for axes in figure.axes for artist in axes.artists]
    return [box.txt_label.get_text() for box in boxes]


def test_images_have_scale_bars_if_their_axes_have_a_unit():
    assert texts(run(SumUDF()).plot()) == ["2 mrad"]
    plain = ud.run_udf(da.from_array(FRAMES), SumUDF()).plot()
    assert texts(plain) == []


def test_a_profile_needs_a_mean_and_a_spread():
    axes = (Axis(name="radius", unit="nm"), Axis(name="of the scan"))
    with pytest.raises(ArgumentValueError, match="two values"):
        draw([Panel(title="p", values=np.ones((5, 3)), axes=axes, style="profile")])


@pytest.mark.parametrize(("log", "scale"), [(None, "log"), (False, "linear"), (True, "log")])
def test_rings_below_a_bright_beam_are_seen(log, scale):
    y, x = np.mgrid[:32, :32] - 16
    radius = np.hypot(y, x)
    frame = np.where(radius < 3, 5000, np.where(abs(radius - 9) < 1, 20, 2))
    frames = np.broadcast_to(frame, (2, 3, 32, 32)).astype("uint16")
    profile = ud.run_udf(da.from_array(frames), RadialProfileUDF()).compute()
    curve = profile.plot(log=log).axes[0]
    assert curve.get_yscale() == scale
    if scale == "log":  # the curve fills the panel
        low, high = curve.get_ylim()
        assert 0.3 < low <= 2 < 5000 <= high


def test_flat_profiles_and_profiles_with_negative_values_are_linear():
    flat = da.ones((2, 3, 16, 16), chunks=(2, 3, 16, 16))
    for data in (flat, -flat, flat * da.from_array(np.where(np.eye(16), -900.0, 1.0))):
        assert ud.run_udf(data, RadialProfileUDF()).plot().axes[0].get_yscale() == "linear"
