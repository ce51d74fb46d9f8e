"""Coordinates with units: parameters in their units, and the units of results."""

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import udfdask as ud
import udfdask.xarray
from udfdask.udfs import CoMUDF, RadialProfileUDF, SumSigUDF, SumUDF, VirtualDetectorUDF

FRAMES = np.random.default_rng(1).integers(0, 100, (4, 5, 8, 9)).astype("uint16")
DIMS = ("y", "x", "ky", "kx")


def labeled(scale=0.5, offset=-2.0, step=1.0):
    coords = {
        "y": ("y", 10.0 - 2.0 * np.arange(4), {"units": "nm"}),  # descending
        "x": ("x", step * np.arange(5.0), {"units": "nm"}),
        "ky": ("ky", offset + scale * np.arange(8), {"units": "mrad"}),
        "kx": ("kx", offset + scale * np.arange(9), {"units": "mrad"}),
    }
    data = da.from_array(FRAMES, chunks=(2, 5, 8, 9))
    return xr.DataArray(data, dims=DIMS, coords=coords, attrs={"units": "counts"})


@pytest.mark.filterwarnings("ignore:CoMUDF takes the axes:udfdask.UDFWarning")  # x before y
@given(
    order=st.permutations(DIMS),
    window=st.tuples(st.integers(0, 2), st.integers(3, 4)),
    roi=st.sampled_from([None, np.s_[:1, 1:]]),
)
def test_calibration_goes_in_and_out(order, window, roi):
    array = labeled().isel(y=slice(*window)).transpose(*order)
    options = {"sig_dims": ("ky", "kx")}
    expected = array.transpose(*DIMS)
    if [d for d in order if d in "yx"] == ["x", "y"]:
        expected = expected.transpose("x", "y", "ky", "kx")
    nav = expected.isel(ky=0, kx=0, drop=True)
    total, sums, com = array.udf.run_udf([SumUDF(), SumSigUDF(), CoMUDF()], roi=roi, **options)
    for found, coords in ((total, expected.isel(y=0, x=0, drop=True)), (sums, nav)):
        assert found["intensity"].attrs["units"] == "counts"
        assert found["intensity"].dims == coords.dims
        for dim in coords.dims:
            xr.testing.assert_identical(found["intensity"][dim], coords[dim])
    assert com["magnitude"].attrs["units"] == "mrad"
    assert com["raw_com"].attrs["units"] == "px"


def test_derivatives_follow_a_descending_axis():
    com = labeled().udf.run_udf(CoMUDF(), sig_dims=("ky", "kx")).compute()
    down, across = (
        np.gradient(com["field_y"], -2.0, axis=0),
        np.gradient(com["field_x"], 1.0, axis=1),
    )
    np.testing.assert_array_equal(com["divergence"], down + across)
    assert com["divergence"].attrs["units"] == "mrad/nm"
    flipped = labeled().isel(y=slice(None, None, -1))
    other = flipped.udf.run_udf(CoMUDF(), sig_dims=("ky", "kx")).compute()
    xr.testing.assert_allclose(
        other["divergence"].isel(y=slice(None, None, -1)), com["divergence"], rtol=1e-12
    )


def test_parameters_in_units_of_coordinates():
    detector = VirtualDetectorUDF("disk", cy="0 mrad", cx="0.5 mrad", r="1.5 mrad")
    found = labeled().udf.run_udf(detector, sig_dims=("ky", "kx"))["intensity"]
    plain = ud.run_udf(da.from_array(FRAMES), VirtualDetectorUDF("disk", cy=4, cx=5, r=3))
    np.testing.assert_array_equal(found, plain["intensity"].compute())
    profile = labeled().udf.run_udf(RadialProfileUDF(r="2 mrad"), sig_dims=("ky", "kx"))
    assert profile["radius"].attrs["units"] == "mrad"
    np.testing.assert_allclose(profile["radius"], [0.25, 0.75, 1.25, 1.75])
    assert labeled().udf.explain(CoMUDF(r="1 mrad"), sig_dims=2).n_chunks == 2
    *_, last = labeled().udf.run_udf_iter(CoMUDF(r="1 mrad"), sig_dims=("ky", "kx"))
    assert last.buffers[0]["field"].attrs["units"] == "mrad"


def test_uneven_and_missing_coordinates():
    uneven = labeled().assign_coords(kx=("kx", np.arange(9.0) ** 2, {"units": "mrad"}))
    with pytest.raises(ud.ArgumentValueError, match="'kx' are not evenly spaced"):
        uneven.udf.run_udf(CoMUDF(cx="1 mrad"), sig_dims=("ky", "kx"))
    com = uneven.udf.run_udf(CoMUDF(), sig_dims=("ky", "kx"))
    assert com["field"].attrs["units"] == "px"
    bare = labeled().drop_vars("kx")
    with pytest.raises(ud.ArgumentValueError, match="the axis 'kx' of the data has no unit"):
        bare.udf.run_udf(CoMUDF(r="1 mrad"), sig_dims=("ky", "kx"))
