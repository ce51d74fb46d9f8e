"""Formats that are HDF5 files: the data, axes and signal that their own programs read."""

import json
import shutil

import numpy as np
import pytest
from dask.array.utils import assert_eq

from udfdask.io import open_file
from udfdask.io.hdf5 import hyperspy_format

h5py = pytest.importorskip("h5py", reason="h5py is in the io extra")
hs = pytest.importorskip("hyperspy.api", reason="hyperspy is in the io extra")

SCAN = np.random.default_rng(5).integers(0, 99, (4, 5, 6, 7)).astype(np.uint16)
NAMES = ("y", "x", "ky", "kx")
UNITS = ("nm", "nm", "1/nm", "1/nm")
SCALES = (0.5, 0.25, 2.0, 2.0)
OFFSETS = (0.0, 1.0, -6.0, -6.0)


def signal(values, kind):
    made = kind(values, metadata={"General": {"title": "gold"}})
    axes = zip(made.axes_manager._axes, NAMES, UNITS, SCALES, OFFSETS, strict=False)
    for axis, name, unit, scale, offset in axes:
        axis.name, axis.units, axis.scale, axis.offset = name, unit, scale, offset
    return made


def described(opened):
    return [(axis.name, axis.unit, axis.scale, axis.offset) for axis in opened.axes]


EXPECTED = list(zip(NAMES, UNITS, SCALES, OFFSETS, strict=True))


@pytest.mark.parametrize("suffix", [".hspy", ".h5", ".nxs"])
@pytest.mark.parametrize("kind", [hs.signals.Signal1D, hs.signals.Signal2D])
def test_signals_of_hyperspy(tmp_path, suffix, kind):
    written = ".nxs" if suffix == ".nxs" else ".hspy"
    values = SCAN[0] if kind is hs.signals.Signal1D else SCAN
    signal(values, kind).save(tmp_path / f"scan{written}")
    if suffix != written:
        shutil.move(tmp_path / f"scan{written}", tmp_path / f"scan{suffix}")
    opened = open_file(tmp_path / f"scan{suffix}")
    assert_eq(opened.array, values)
    assert opened.sig_dims == (1 if kind is hs.signals.Signal1D else 2)
    assert described(opened) == EXPECTED[: values.ndim]
    assert opened.title == ("scan" if suffix == ".nxs" else "gold")


@pytest.mark.parametrize("suffix", [".de5", ".emd", ".h5"])
@pytest.mark.parametrize("chunks", [None, (3, 2, -1, 4)])
def test_emd_of_rosettasciio(tmp_path, suffix, chunks):
    """It stores the last dimension first."""
    signal(SCAN, hs.signals.Signal2D).save(tmp_path / "scan.emd")
    (tmp_path / "scan.emd").rename(tmp_path / f"scan{suffix}")
    opened = open_file(tmp_path / f"scan{suffix}", chunks=chunks)
    assert_eq(opened.array, SCAN)
    assert opened.sig_dims == 2
    assert [row[0::2] for row in described(opened)] == [row[0::2] for row in EXPECTED]
    assert opened.axes[0].unit == "nm"
    assert chunks is None or opened.array.chunks == ((3, 1), (2, 2, 1), (6,), (4, 3))


@pytest.mark.parametrize(
    ("first", "complete", "text"), [(0, False, str), (1, True, np.bytes_), (1, False, str)]
)
def test_emd_of_ncempy_and_py4dstem(tmp_path, first, complete, text):
    """They store the first dimension first, and its positions from EMD 1.0 on in ``dim0``."""
    units = ["[n_m]", "[n_m]", "[1_/_n_m]", "[1_/_n_m]"] if first else UNITS
    with h5py.File(tmp_path / "scan.emd", "w") as file:
        file.attrs.update(version_major=1 - first, version_minor=2 * first)
        group = file.create_group("data/scan")
        group.attrs["emd_group_type"] = 1 if first else "array"
        group["data"] = SCAN
        group["data"].attrs["units"] = text("counts")
        for dim, n in enumerate(SCAN.shape):
            positions = OFFSETS[dim] + SCALES[dim] * np.arange(n if complete else 2)
            group[f"dim{dim + first}"] = positions
            group[f"dim{dim + first}"].attrs.update(name=text(NAMES[dim]), units=text(units[dim]))
    opened = open_file(tmp_path / "scan.emd")
    assert_eq(opened.array, SCAN)
    assert (opened.sig_dims, opened.unit) == (2, "counts")
    assert described(opened) == EXPECTED


def test_x_of_py4dstem_is_the_first_axis(tmp_path):
    with h5py.File(tmp_path / "cube.h5", "w") as file:
        group = file.create_group("datacube_root/datacube")
        group.attrs.update(emd_group_type="array", python_class="DataCube")
        group["data"] = SCAN
        for dim, name in enumerate(["Rx", "Ry", "Qx", "Qy"]):
            group[f"dim{dim}"] = SCALES[dim] * np.arange(2)
            group[f"dim{dim}"].attrs.update(name=name, units="A^-1" if name[0] == "Q" else "A")
    opened = open_file(tmp_path / "cube.h5")
    assert_eq(opened.array, SCAN)
    assert [axis.name for axis in opened.axes] == ["y", "x", "ky", "kx"]
    assert [axis.unit for axis in opened.axes] == ["Å", "Å", "1/Å", "1/Å"]


@pytest.mark.parametrize("datum", [1, 2])
def test_nion_swift(tmp_path, datum):
    calibrations = [
        {"offset": offset, "scale": scale, "units": unit}
        for unit, scale, offset in zip(UNITS, SCALES, OFFSETS, strict=True)
    ]
    properties = {
        "datum_dimension_count": datum,
        "collection_dimension_count": 4 - datum,
        "intensity_calibration": {"units": "counts"},
        "dimensional_calibrations": calibrations,
    }
    with h5py.File(tmp_path / "data_1.h5", "w") as file:
        file["data"] = SCAN
        file["data"].attrs["properties"] = json.dumps(properties)
    opened = open_file(tmp_path / "data_1.h5")
    assert_eq(opened.array, SCAN)
    assert (opened.sig_dims, opened.unit) == (datum, "counts")
    assert [row[1:] for row in described(opened)] == [row[1:] for row in EXPECTED]


def test_the_format_is_known_by_the_contents(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["Acquisition0/ImageData/Image"] = SCAN[None]
        file["Acquisition0/SVIData/Company"] = "Delmic"
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["Version"], file["Data/Image/1/Data"] = [b'{"format": "Velox"}'], SCAN
    with h5py.File(tmp_path / "c.h5", "w") as file:
        file["4DSTEM_simulation/data/datacubes/CBED_array_depth0000/datacube"] = SCAN
    with h5py.File(tmp_path / "d.h5", "w") as file:
        file["AcquisitionLog"], file["Version"], file["Data"] = 1, [1], SCAN
    names = [hyperspy_format(tmp_path / f"{letter}.h5") for letter in "abcd"]
    assert names == ["Delmic", "EMD", "EMD", None]


def test_netcdf_4_is_hdf5(tmp_path):
    with h5py.File(tmp_path / "a.nc", "w") as f:
        f.attrs["_NCProperties"] = "version=2,netcdf=4.9.2"
        f["scan"] = SCAN
        for dim, name in enumerate(NAMES):
            # what the library writes for a dimension without a variable
            f[name] = np.zeros(SCAN.shape[dim], ">f4")
            f[name].make_scale(f"This is a netCDF dimension but not a netCDF variable. {dim:9}")
            f["scan"].dims[dim].attach_scale(f[name])
        f["labeled"] = SCAN[0, 0, 0]
        f["labeled"].dims[0].label = "energy"
    assert open_file(tmp_path / "a.nc", dataset="labeled").axes[0].name == "energy"
    opened = open_file(tmp_path / "a.nc")
    assert_eq(opened.array, SCAN)
    assert opened.reader == "NetCDF 4, dataset scan"
    assert [(axis.name, axis.scale) for axis in opened.axes] == [(name, 1) for name in NAMES]
