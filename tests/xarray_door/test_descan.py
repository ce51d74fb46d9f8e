"""Shifts of frames that are DataArrays: aligned by names and coordinates."""

import dask.array as da
import numpy as np
import pytest
import xarray as xr

import udfdask as ud
import udfdask.xarray
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import CoMUDF, PickUDF, SumUDF

DATA = np.random.default_rng(0).integers(0, 99, (4, 5, 6, 7)).astype("uint16")
SHIFTS = np.random.default_rng(1).uniform(-2, 2, (4, 5, 2))
COORDS = {"y": np.arange(4) * 0.5, "x": list("abcde")}
ARRAY = xr.DataArray(
    da.from_array(DATA, chunks=(2, 3, 6, 7)), dims=("y", "x", "ky", "kx"), coords=COORDS
)
LABELED = xr.DataArray(SHIFTS, dims=("y", "x", "axis"), coords=COORDS)
RIGHT = ud.run_udf(ARRAY.data, SumUDF(), descan=SHIFTS)["intensity"].compute()
SIG = ("ky", "kx")


def total(descan, array=ARRAY, sig_dims=SIG):
    return array.udf.run_udf(SumUDF(), sig_dims=sig_dims, descan=descan)["intensity"].values


def test_one_signal_axis():
    spectra = ARRAY.isel(ky=0)
    expected = total(LABELED[..., :1], spectra, "kx")
    for shifts in (LABELED[..., 0], SHIFTS[..., 0]):
        np.testing.assert_array_equal(total(shifts, spectra, "kx"), expected)


def test_own_results():
    com = ARRAY.udf.run_udf(CoMUDF(), sig_dims=SIG)
    with raise_if_dask_computes():
        found = ARRAY.udf.run_udf(PickUDF(), sig_dims=SIG, descan=com["raw_shifts"])
    raw = ud.run_udf(ARRAY.data, CoMUDF())["raw_shifts"]
    expected = ud.run_udf(ARRAY.data, PickUDF(), descan=raw)["intensity"].compute()
    np.testing.assert_array_equal(found["intensity"].values, expected)


def test_all_methods():
    options = {"sig_dims": SIG, "descan": LABELED.transpose("axis", "x", "y")}
    assert "descans" in str(ARRAY.udf.explain(SumUDF(), **options))
    (*_, last) = ARRAY.udf.run_udf_iter(SumUDF(), scheduler="synchronous", **options)
    np.testing.assert_array_equal(last.buffers[0]["intensity"].values, RIGHT)
    np.testing.assert_array_equal(total(LABELED, ARRAY.compute()), RIGHT)


@pytest.mark.parametrize(
    ("shifts", "message"),
    [
        (LABELED.rename(axis="other").isel(other=0), "one more of size 2"),
        (LABELED.rename(y="z"), "one more of size 2"),
        (LABELED.isel(axis=[0, 1, 0]), "one more of size 2"),
        (LABELED.isel(y=slice(1, None)), "3 positions along 'y', the data have 4"),
        (LABELED.assign_coords(x=list("abcdz")), "different coordinates along 'x'"),
        (LABELED.to_dataset(name="raw"), "one of its arrays"),
    ],
)
def test_shifts_that_do_not_fit(shifts, message):
    with pytest.raises(ud.UDFError, match=message):
        total(shifts)
