"""Regions are aligned by coordinates; dictionaries select what `DataArray.sel` selects."""

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suites import examples
from udfdask.errors import ArgumentTypeError, ArgumentValueError, UDFWarning
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import SumSigUDF

xr = pytest.importorskip("xarray", reason="xarray is an extra")
pytest.importorskip("udfdask.xarray")


@pytest.fixture
def roi(array):
    return array["thickness"] % 5 < 2


def sums(array, roi):
    with raise_if_dask_computes():
        lazy = array.udf.run_udf(SumSigUDF(), sig_dims=("ky", "kx"), roi=roi)["intensity"]
    return lazy.compute()


@pytest.mark.point(22)
@pytest.mark.parametrize(
    "change",
    [
        lambda roi: roi.drop_vars("y"),
        lambda roi: roi.assign_coords(other=("y", range(4))),
        lambda roi: roi.values,
        lambda roi: roi.values.tolist(),
    ],
    ids="unlabelled others array list".split(),
)
def test_however_it_is_given(array, roi, change):
    xr.testing.assert_identical(sums(array, change(roi)), sums(array, roi))


def test_a_region_of_one_dimension_is_repeated(array):
    lines = xr.DataArray([True, False, False, True], dims="y", coords={"y": array["y"]})
    xr.testing.assert_identical(sums(array, lines), sums(array, np.s_[::3]))


def test_a_multi_index(array, roi):
    stacked, flat = array.stack(p=("y", "x")), roi.stack(p=("y", "x"))
    xr.testing.assert_identical(sums(stacked, flat[::-1]), sums(stacked, flat))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda roi: roi.assign_coords(y=roi["y"] + 0.1), "different coordinates along 'y'.*0.1"),
        (lambda roi: roi.isel(y=[0, 0, 1, 2]), "different coordinates along 'y'"),
        (lambda roi: roi.isel(x=slice(4)), "4 positions along 'x', the data have 6.*reindex_like"),
        (lambda roi: roi.rename(x="z"), "but the navigation dimensions of the data are"),
        (lambda roi: roi.rename(x="kx"), "the roi has the dimensions"),
    ],
    ids="shifted repeated cropped renamed signal".split(),
)
def test_misaligned_regions(array, roi, change, match):
    with pytest.raises(ArgumentValueError, match=match):
        sums(array, change(roi))


def test_a_lazy_region(array, roi):
    with pytest.raises(ArgumentTypeError, match=r"lazy: write roi = roi\.compute\(\) on a line"):
        sums(array, roi.chunk())


SIG = ("ky", "kx")


def selected(array, roi, method="run_udf"):
    """Return which positions are processed, from the result of a sum of ones."""
    ones = xr.ones_like(array, dtype="float64")
    if method == "run_udf_iter":
        *_, last = ones.udf.run_udf_iter(SumSigUDF(), sig_dims=SIG, roi=roi)
        return last.buffers[0]["intensity"].values > 0
    with raise_if_dask_computes():
        found = ones.udf.run_udf(SumSigUDF(), sig_dims=SIG, roi=roi)
    return found["intensity"].values > 0


def as_xarray_selects(array, roi):
    """Return which positions xarray keeps of an array of the numbers of positions."""
    nav = array.isel(ky=0, kx=0)
    numbers = nav.copy(data=np.arange(nav.size).reshape(nav.shape))
    mask = np.zeros(nav.shape, dtype=bool)
    mask.flat[np.ravel(numbers.sel(roi).values)] = True
    return mask


ends = st.none() | st.sampled_from([-1.0, 0.0, 0.5, 0.7, 1.5, 2.0, 9.0])
places = st.none() | st.integers(-6, 7)
steps = st.sampled_from([None, 1, 2])


@settings(max_examples=examples(60))
@given(
    y=st.none() | st.builds(slice, ends, ends, steps) | st.lists(st.sampled_from([0.0, 0.5, 1.5])),
    x=st.none() | st.builds(slice, places, places, steps) | st.integers(-6, 5),
    turned=st.booleans(),
)
@pytest.mark.filterwarnings("ignore:the roi .*selects no position")
def test_it_selects_what_xarray_selects(y, x, turned):
    """Labels along y, whose coordinates may descend; positions along x, which has none."""
    array = xr.DataArray(
        da.ones((4, 6, 2, 2), chunks=(2, 3, 2, 2)), dims=("y", "x", *SIG), coords={"y": HALVES}
    )
    array = array.isel(y=slice(None, None, -1)) if turned else array
    roi = {name: label for name, label in (("y", y), ("x", x)) if label is not None}
    np.testing.assert_array_equal(selected(array, roi), as_xarray_selects(array, roi))


HALVES = np.arange(4) * 0.5


def test_both_ends_of_labels_are_included_in_progressive_runs(array):
    found = selected(array, {"y": slice(0.5, 1.0), "x": slice(4, 5)}, "run_udf_iter")
    assert np.argwhere(found).tolist() == [[1, 4], [1, 5], [2, 4], [2, 5]]


def test_dates_texts_and_several_levels():
    times = np.arange("2026-11-20", "2026-11-24", dtype="M8[D]")
    names = ["a", "b", "c", "a", "e", "f"]
    array = xr.DataArray(
        da.ones((4, 6, 2, 2)), dims=("t", "name", *SIG), coords={"t": times, "name": names}
    )
    found = selected(array, {"t": slice("2026-11-21", "2026-11-22"), "name": "a"})
    assert np.argwhere(found).tolist() == [[1, 0], [1, 3], [2, 0], [2, 3]]
    assert selected(array, {"t": times[[3, 1]], "name": "e"}).sum(axis=1).tolist() == [0, 1, 0, 1]
    with pytest.raises(ArgumentValueError, match="cannot be found"):
        selected(array, {"name": ["a", "e"]})  # xarray takes lists only of labels that are unique
    stacked = array.drop_vars("name").stack(p=("t", "name"))
    assert selected(stacked, {"p": (times[1], 2)}).sum() == 1


@pytest.mark.parametrize(
    ("roi", "match"),
    [
        ({"z": slice(1, 2)}, r"names {'z'}, but .* are \('y', 'x'\)"),
        ({"kx": slice(1, 2)}, "names {'kx'}"),
        ({"y": 0.7}, "cannot be found"),
        ({"y": [0.5, 0.6]}, "cannot be found"),
        ({"x": 9}, "cannot be found"),
    ],
    ids="unknown signal label list position".split(),
)
def test_what_cannot_be_found(array, roi, match):
    with raise_if_dask_computes(), pytest.raises(ArgumentValueError, match=match):
        selected(array, roi)


def test_labels_that_select_nothing_warn(array):
    with pytest.warns(UDFWarning, match=r"selects no position of the scan, .* \(4, 6\)"):
        assert not selected(array, {"y": slice(7, 9)}).any()
