"""Mapped files: the classic format of NetCDF, and .npy files."""

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


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["uint16", ">f4", "complex128"])
def test_reads_what_was_saved(tmp_path, order, dtype):
    values = np.asarray(np.arange(360).reshape(3, 4, 5, 6), dtype=dtype, order=order)
    np.save(tmp_path / "a.npy", values)
    opened = open_file(tmp_path / "a.npy", chunks=(2, 3, -1, 4))
    assert opened.array.dtype == values.dtype
    assert_eq(opened.array, values)
    assert (opened.reader, opened.title, opened.sig_dims) == ("NumPy", "a", 2)


@pytest.mark.parametrize(
    ("shape", "sig_dims", "names"),
    [
        ((8,), 1, ("sig_x",)),
        ((3, 8), 1, ("x", "sig_x")),
        ((3, 8, 8), 2, ("x", "sig_y", "sig_x")),
        ((2, 3, 4, 8, 8), 2, ("nav_0", "nav_1", "nav_2", "sig_y", "sig_x")),
    ],
)
def test_signal_dimensions_and_names_where_nobody_says(tmp_path, shape, sig_dims, names):
    np.save(tmp_path / "a.npy", np.zeros(shape))
    opened = open_file(tmp_path / "a.npy")
    assert opened.sig_dims == sig_dims
    assert tuple(axis.name for axis in opened.axes) == names


def test_signal_dimensions_as_asked_for(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2, 3, 4)))
    opened = open_file(tmp_path / "a.npy", sig_dims=1)
    assert opened.sig_dims == 1
    assert [axis.name for axis in opened.axes] == ["y", "x", "sig_x"]
