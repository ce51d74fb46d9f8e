"""NetCDF files: the classic format, and the one that is HDF5."""

import numpy as np
import pytest
from dask.array.utils import assert_eq

from udfdask.io import open_file
from udfdask.testing import raise_if_dask_computes

xr = pytest.importorskip("xarray", reason="xarray is in the io extra")


@pytest.fixture
def values():
    return np.random.default_rng(2).integers(0, 99, (3, 4, 5, 6)).astype(np.int16)


@pytest.fixture
def file(tmp_path, values):
    coords = {"y": ("y", [1.0, 1.5, 2.0], {"units": "nm"}), "x": [0.0, 1.0, 3.0, 9.0]}
    scan = xr.DataArray(values, dims=("y", "x", "ky", "kx"), coords=coords)
    dark = xr.DataArray(values[0, 0], dims=("ky", "kx"))
    xr.Dataset({"scan": scan, "dark": dark}).to_netcdf(tmp_path / "a.nc", engine="scipy")
    return tmp_path / "a.nc"


def test_the_variable_that_is_meant(file, values):
    with raise_if_dask_computes():
        opened = open_file(file, chunks=(2, 4, 5, 6))
    assert (opened.reader, opened.title, opened.sig_dims) == ("NetCDF, variable scan", "a", 2)
    assert opened.array.chunks == ((2, 1), (4,), (5,), (6,))
    assert_eq(opened.array, values.astype(opened.array.dtype))
    assert opened.array.name == open_file(file, chunks=(2, 4, 5, 6)).array.name


def test_axes(file):
    y, x, ky, _ = open_file(file).axes
    assert (y.name, y.unit, y.scale, y.offset) == ("y", "nm", 0.5, 1.0)
    assert (x.name, x.unit, x.scale) == ("x", None, 1.0)
    assert ky.name == "ky"


def test_the_variable_asked_for(file, values):
    opened = open_file(file, dataset="dark", sig_dims=2)
    np.testing.assert_array_equal(opened.array.compute(), values[0, 0])


def test_values_are_as_they_are_stored(tmp_path):
    scan = xr.DataArray(np.arange(6, dtype="i2").reshape(1, 2, 3), dims=("t", "y", "x"))
    scan.encoding["scale_factor"] = 0.5
    scan.to_dataset(name="scan").to_netcdf(tmp_path / "a.nc", engine="scipy")
    with xr.open_dataset(tmp_path / "a.nc", engine="scipy", decode_cf=False) as stored:
        np.testing.assert_array_equal(open_file(tmp_path / "a.nc").array.compute(), stored["scan"])


def test_netcdf_4_is_hdf5(tmp_path, values):
    h5py = pytest.importorskip("h5py", reason="h5py is in the io extra")
    with h5py.File(tmp_path / "a.nc", "w") as f:
        f.attrs["_NCProperties"] = "version=2,netcdf=4.9.2"
        f["scan"] = values
        for dim, name in enumerate(("y", "x", "ky", "kx")):
            # what the library writes for a dimension without a variable
            f[name] = np.zeros(values.shape[dim], ">f4")
            f[name].make_scale(f"This is a netCDF dimension but not a netCDF variable. {dim:9}")
            f["scan"].dims[dim].attach_scale(f[name])
    opened = open_file(tmp_path / "a.nc")
    assert_eq(opened.array, values)
    assert opened.reader == "NetCDF 4, dataset scan"
    assert [axis.name for axis in opened.axes] == ["y", "x", "ky", "kx"]
    assert {(axis.unit, axis.scale) for axis in opened.axes} == {(None, 1.0)}
