"""`output_names`: a function with several results gives one array for each, in all libraries."""

import importlib
import re

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
import udfdask.dask
from udfdask.testing import check_udf, raise_if_dask_computes
from udfdask.udfs import AutoUDF

NAMES = ("position", "width")
SYNC = {"scheduler": "synchronous"}
DATA = np.random.default_rng(3).random((4, 5, 12))


@pytest.fixture
def x():
    return da.from_array(DATA, chunks=(2, 3, 12))


def fit(spectrum):
    """Return the place and the width of a peak."""
    return spectrum.argmax(), float(spectrum.std())


def assert_fitted(found, where=...):
    np.testing.assert_array_equal(np.asarray(found["position"])[where], DATA.argmax(-1)[where])
    np.testing.assert_array_equal(np.asarray(found["width"])[where], DATA.std(-1)[where])


@pytest.mark.parametrize("form", [tuple, list, np.array])
def test_one_array_for_each_name(x, form):
    with raise_if_dask_computes():
        found = ud.map_frames(x, lambda s: form(fit(s)), sig_dims=1, output_names=NAMES)
    assert list(found) == list(NAMES)
    assert found["width"].chunks == ((2, 2), (3, 2))
    assert found["position"].dtype == ("f8" if form is np.array else "i8")
    assert_fitted(found.compute(**SYNC))
    again = x.udf.map_frames(fit, sig_dims=1, output_names=list(NAMES))
    assert_fitted(again.compute(**SYNC))


def test_values_of_different_shapes_and_dtypes(x):
    def facts(spectrum, n=2):
        return bool(spectrum[0] > 0.5), spectrum[:n], spectrum.sum()

    names = ("bright", "first", "total")
    found = ud.map_frames(x, facts, sig_dims=1, output_names=names, n=3).compute(**SYNC)
    np.testing.assert_array_equal(found["bright"], DATA[..., 0] > 0.5)
    np.testing.assert_array_equal(found["first"], DATA[..., :3])
    np.testing.assert_allclose(found["total"], DATA.sum(-1))
    told = ud.map_frames(
        x, fit, sig_dims=1, output_names=NAMES, output_shape=(), output_dtype="float32"
    )
    assert [told[name].dtype for name in NAMES] == ["f4", "f4"]
    lists = ud.map_frames(
        x, lambda s: (s[s > 0.5], "a"), sig_dims=1, output_names=NAMES, ragged=True
    ).compute(**SYNC)
    np.testing.assert_array_equal(lists["position"][1, 2], DATA[1, 2][DATA[1, 2] > 0.5])
    assert lists["width"][3, 4] == "a"


def test_with_a_region_and_as_a_udf(x):
    roi = np.zeros((4, 5), bool)
    roi[1, 2:] = True
    udf = AutoUDF(fit, output_names=NAMES)
    found = ud.run_udf(x, udf, sig_dims=1, roi=roi).compute(**SYNC)
    assert_fitted(found, roi)
    assert np.isnan(found["width"][~roi]).all()
    check_udf(udf, DATA, sig_dims=1)
    *_, last = ud.run_udf_iter(x, udf, sig_dims=1, **SYNC)
    assert_fitted(last.buffers[0])


def test_labeled_arrays(x):
    xr = pytest.importorskip("xarray", reason="xarray is an extra")
    importlib.import_module("udfdask.xarray")

    coords = {"y": ("y", [1.0, 2, 3, 4], {"units": "nm"})}
    array = xr.DataArray(x, dims=("y", "x", "E"), coords=coords)
    found = array.udf.map_frames(fit, sig_dims="E", output_names=NAMES)
    assert isinstance(found, xr.Dataset)
    assert found["width"].dims == ("y", "x")
    assert found["width"].y.units == "nm"
    assert_fitted(found.compute(**SYNC))
    with pytest.raises(ud.ArgumentValueError, match=r"'x' is a dimension .* such as 'x_found'"):
        array.udf.map_frames(fit, sig_dims="E", output_names=("x", "y"))
    with pytest.raises(ud.ArgumentValueError, match=r"output_dims= .* rename_dims"):
        array.udf.map_frames(fit, sig_dims="E", output_names=NAMES, output_dims="n")


@pytest.mark.parametrize("lazy", [True, False])
def test_signals(x, lazy):
    hs = pytest.importorskip("hyperspy.api", reason="hyperspy is an extra")
    importlib.import_module("udfdask.hyperspy")

    signal = hs.signals.Signal1D(DATA, metadata={"General": {"title": "Scan"}})
    signal.axes_manager[0].scale, signal.axes_manager[0].units = 0.5, "nm"
    signal = signal.as_lazy(chunks=(2, 3, 12)) if lazy else signal
    found = signal.udf.map_frames(fit, output_names=NAMES, show_progressbar=False)
    assert found["width"]._lazy == lazy
    assert found["width"].axes_manager[0].units == "nm"
    assert found["width"].metadata.General.title == "width of Scan"
    found = found.compute(show_progressbar=False)
    assert_fitted({name: found[name].data for name in NAMES})


def above(limit, value):
    """Return a function that returns None for most spectra."""
    return lambda spectrum: value if spectrum[0] > limit else None


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (1.5, None),
        (2j, None),
        (np.ones(3), None),
        (np.timedelta64(1, "s"), None),
        ((1.0, 2.0), NAMES),
    ],
)
def test_none_is_a_missing_value(x, value, names):
    found = ud.map_frames(x, above(0.5, value), sig_dims=1, output_names=names)
    found = found.compute(**SYNC)
    for array in [found[name] for name in names] if names else [found]:
        missing = np.isnan(array).reshape(4, 5, -1)
        np.testing.assert_array_equal(missing.all(-1), DATA[..., 0] <= 0.5)
        np.testing.assert_array_equal(missing.any(-1), DATA[..., 0] <= 0.5)


def test_none_in_results_of_integers_names_the_position(x):
    with pytest.raises(ud.UDFError, match=r"returned None .* int64, .* output_dtype=float") as info:
        ud.map_frames(x, above(0.5, 1), sig_dims=1).compute(**SYNC)
    (found,) = re.findall(r"navigation coordinates \((\d), (\d)\)", info.value.__notes__[0])
    assert DATA[int(found[0]), int(found[1]), 0] <= 0.5
    with pytest.raises(ud.UDFError, match=r"None for a frame of ones: add a return statement"):
        ud.map_frames(x, lambda spectrum: None, sig_dims=1)
    told = {"output_shape": (), "output_dtype": float}
    assert np.isnan(ud.map_frames(x, lambda s: None, sig_dims=1, **told).compute(**SYNC)).all()


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ((1, 2, 3), "3 values"),
        (np.ones(1), "1 values"),
        (2.0, "float"),
        (np.ones(()), "ndarray"),
        ("ab", "str"),
        ({"a": 1, "b": 2}, "dict"),
        ({1, 2}, "set"),
    ],
)
def test_other_return_values_than_names(x, value, found):
    message = rf"function returned {found}, but output_names=.* of 2 values, one for each name"
    with pytest.raises(ud.UDFError, match=message):
        ud.map_frames(x, lambda spectrum: value, sig_dims=1, output_names=NAMES)
    told = {"output_shape": (), "output_dtype": float}
    lazy = ud.map_frames(x, lambda spectrum: value, sig_dims=1, output_names=NAMES, **told)
    with pytest.raises(ud.UDFError, match=message):
        lazy.compute(**SYNC)


@pytest.mark.parametrize(
    "names",
    [
        "position",
        {"a", "b"},
        (),
        ("a", "a"),
        ("a", "peak width"),
        ("a", 2),
    ],
)
def test_names_that_are_none(x, names):
    with pytest.raises(ud.UDFError):
        ud.map_frames(x, fit, sig_dims=1, output_names=names)


def test_several_results_without_names_are_hinted_at(x):
    with pytest.raises(ud.UDFError, match=r"returned dict, .* or output_names= if it returns sev"):
        ud.map_frames(x, lambda s: {"a": 1}, sig_dims=1)
    with pytest.raises(ud.UDFError, match=r"is not an array .* or output_names= if it returns sev"):
        ud.map_frames(x, lambda s: (1, s), sig_dims=1)
    with pytest.raises(ud.UDFError, match=r"returned dict \(result 'width'\)"):
        ud.map_frames(x, lambda s: (1, {}), sig_dims=1, output_names=NAMES)
    with pytest.raises(ud.ArgumentValueError, match=r"monitor=True .* leave out output_names="):
        AutoUDF(fit, output_names=NAMES, monitor=True)
