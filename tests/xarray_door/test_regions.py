"""Regions of interest are aligned by coordinates, or raise an error."""

import numpy as np
import pytest

from udfdask.errors import ArgumentTypeError, ArgumentValueError
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
    "change",
    [
        lambda roi: roi.assign_coords(y=roi["y"] + 0.1),
        lambda roi: roi.isel(y=[0, 0, 1, 2]),
        lambda roi: roi.isel(x=slice(4)),
        lambda roi: roi.rename(x="z"),
        lambda roi: roi.rename(x="kx"),
    ],
    ids="shifted repeated cropped renamed signal".split(),
)
def test_misaligned_regions(array, roi, change):
    with pytest.raises(ArgumentValueError):
        sums(array, change(roi))


def test_a_lazy_region(array, roi):
    with pytest.raises(ArgumentTypeError, match=r"lazy: write roi = roi\.compute\(\) on a line"):
        sums(array, roi.chunk())
