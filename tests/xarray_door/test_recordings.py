"""Recordings of real instruments, with the labels in their files."""

import os
from pathlib import Path

import numpy as np
import pytest

import udfdask as ud
from udfdask.io import open_file
from udfdask.udfs import CoMUDF, SumSigUDF, SumUDF

xr = pytest.importorskip("xarray", reason="xarray is an extra")
pytest.importorskip("udfdask.xarray")

FOLDER = os.environ.get("UDFDASK_TEST_DATA")

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(FOLDER is None, reason="UDFDASK_TEST_DATA names no folder of recordings"),
]


def labeled(name):
    """A recording as a DataArray, with its axes."""
    assert FOLDER is not None
    opened = open_file(Path(FOLDER) / name)
    coords = {
        axis.name: (axis.name, axis.offset + axis.scale * np.arange(n), {"units": axis.unit})
        for axis, n in zip(opened.axes, opened.array.shape, strict=True)
    }
    dims = [axis.name for axis in opened.axes]
    return xr.DataArray(opened.array, dims=dims, coords=coords), dims[-opened.sig_dims :]


@pytest.mark.parametrize("name", ["test1.blo", "001_4x2_6bit.mib", "bcf_v2_50x50px.bcf"])
def test_sums(name):
    recording, sig = labeled(name)
    nav = [dim for dim in recording.dims if dim not in sig]
    total, sums = ud.compute(*recording.udf.run_udf([SumUDF(), SumSigUDF()], sig_dims=sig))
    wanted = recording.astype("int64").compute()
    xr.testing.assert_equal(total["intensity"].astype("int64"), wanted.sum(nav))
    xr.testing.assert_equal(sums["intensity"].astype("int64"), wanted.sum(sig))
    assert {dim: total[dim].attrs for dim in sig} == {dim: recording[dim].attrs for dim in sig}


def test_where_a_recording_is_bright():
    recording, sig = labeled("test1.blo")
    sums = recording.udf.run_udf(SumSigUDF(), sig)["intensity"].compute()
    bright = sums > sums.median()
    found = recording.udf.run_udf(CoMUDF(), sig, roi=bright.isel(x=slice(None, None, -1)))
    field = found["field"].sel(component="y").compute()
    np.testing.assert_array_equal(field.notnull(), bright)
    xr.testing.assert_identical(field["x"].drop_vars("component"), recording["x"])
