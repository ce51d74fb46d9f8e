"""Formats that are HDF5 files: the data, axes and signal that their own programs read."""

import numpy as np
import pytest
from dask.array.utils import assert_eq

from udfdask.io import open_file

h5py = pytest.importorskip("h5py", reason="h5py is in the io extra")
hs = pytest.importorskip("hyperspy.api", reason="hyperspy is in the io extra")

SCAN = np.random.default_rng(5).integers(0, 99, (4, 5, 6, 7)).astype(np.uint16)
NAMES = ("y", "x", "ky", "kx")
UNITS = ("nm", "nm", "1/nm", "1/nm")
SCALES = (0.5, 0.25, 2.0, 2.0)
OFFSETS = (0.0, 1.0, -6.0, -6.0)


def signal(values, kind):
    made = kind(values)
    axes = zip(made.axes_manager._axes, NAMES, UNITS, SCALES, OFFSETS, strict=False)
    for axis, name, unit, scale, offset in axes:
        axis.name, axis.units, axis.scale, axis.offset = name, unit, scale, offset
    return made


def described(opened):
    return [(axis.name, axis.unit, axis.scale, axis.offset) for axis in opened.axes]


EXPECTED = list(zip(NAMES, UNITS, SCALES, OFFSETS, strict=True))


@pytest.mark.parametrize("kind", [hs.signals.Signal1D, hs.signals.Signal2D])
def test_signals_of_hyperspy(tmp_path, kind):
    values = SCAN[0] if kind is hs.signals.Signal1D else SCAN
    signal(values, kind).save(tmp_path / "scan.hspy")
    opened = open_file(tmp_path / "scan.hspy")
    assert_eq(opened.array, values)
    assert opened.sig_dims == (1 if kind is hs.signals.Signal1D else 2)
    assert described(opened) == EXPECTED[: values.ndim]


def test_netcdf_4_is_hdf5(tmp_path):
    with h5py.File(tmp_path / "a.nc", "w") as f:
        f.attrs["_NCProperties"] = "version=2,netcdf=4.9.2"
        f["scan"] = SCAN
        for dim, name in enumerate(NAMES):
            # what the library writes for a dimension without a variable
            f[name] = np.zeros(SCAN.shape[dim], ">f4")
            f[name].make_scale(f"This is a netCDF dimension but not a netCDF variable. {dim:9}")
            f["scan"].dims[dim].attach_scale(f[name])
    opened = open_file(tmp_path / "a.nc")
    assert_eq(opened.array, SCAN)
    assert opened.reader == "NetCDF 4, dataset scan"
    assert [(axis.name, axis.scale) for axis in opened.axes] == [(name, 1) for name in NAMES]


@pytest.mark.parametrize("chunks", [None, (3, 2, -1, 4)])
def test_emd_without_a_scan_of_its_own(tmp_path, chunks):
    """HyperSpy takes all four dimensions for the signal."""
    signal(SCAN, hs.signals.Signal2D).save(tmp_path / "scan.emd")
    opened = open_file(tmp_path / "scan.emd", chunks=chunks)
    assert_eq(opened.array, SCAN)
    assert opened.sig_dims == 2
    assert [row[0] for row in described(opened)] == [row[0] for row in EXPECTED]
