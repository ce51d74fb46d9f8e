"""Axes of outputs: names, positions and units are those of the data and of the results."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import call
from udfdask.geometry.axes import Axis
from udfdask.io import open_file

h5py = pytest.importorskip("h5py", reason="h5py is in the io extra")

SHAPE = (3, 4, 10, 10)
DATA = np.random.default_rng(5).integers(0, 1000, SHAPE).astype(np.uint16)
UNITS = ("nm", "1/nm", "mrad", "Å", "µm")


def write(path, axes):
    """Write an HDF5 file with axes."""
    with h5py.File(path, "w") as file:
        data = file.create_dataset("data", data=DATA)
        data.attrs["units"] = "counts"
        for place, axis, size in zip(data.dims, axes, SHAPE, strict=True):
            scale = file.create_dataset(axis.name, data=axis.positions(size))
            scale.make_scale(axis.name)
            scale.attrs["units"] = axis.unit
            place.label = axis.name
            place.attach_scale(scale)
    return path


def same(found, wanted):
    """Compare two axes; positions in files are rounded."""
    assert (found.name, found.unit) == (wanted.name, wanted.unit)
    assert found.scale == pytest.approx(wanted.scale, rel=1e-9)
    assert found.offset == pytest.approx(wanted.offset, abs=1e-9 * (1 + abs(wanted.scale)))


scales = st.floats(0.01, 100).flatmap(lambda scale: st.sampled_from([scale, -scale]))


@st.composite
def all_axes(draw):
    """One axis per dimension, with units, scales of both signs and offsets."""
    names = draw(st.sampled_from([("y", "x", "ky", "kx"), ("scan y", "scan_x", "q·y", "q-x")]))
    nav, sig = draw(st.sampled_from(UNITS)), draw(st.sampled_from(UNITS))
    size = draw(scales)
    return tuple(
        Axis(
            name=name,
            unit=nav if k < 2 else sig,
            scale=draw(scales) if k < 2 else size,
            offset=draw(st.floats(-50, 50)),
        )
        for k, name in enumerate(names)
    )


@pytest.mark.parametrize("suffix", ["zarr", pytest.param("nc", marks=pytest.mark.full), "hspy"])
@settings(max_examples=3, deadline=None)
@given(axes=all_axes())
def test_axes_come_back(suffix, axes, tmp_path_factory):
    pytest.importorskip("hyperspy", reason="hyperspy is in the io extra")
    folder = tmp_path_factory.mktemp("axes")
    file, out = write(folder / "scan.h5", axes), folder / f"out.{suffix}"
    udfs = ["--udf", "sum", "--udf", "sumsig", "--udf", "radialprofile:n_bins=3"]
    call("run", file, *udfs, "--no-progress", "--out", out)
    wanted = {
        "sum_intensity": axes[2:],
        "sumsig_intensity": axes[:2],
        "radialprofile_intensity": (*axes[:2], None),
    }
    for name, expected in wanted.items():
        opened = open_file(out, dataset=name, sig_dims=1)
        assert opened.unit == "counts"
        for found, one in zip(opened.axes, expected, strict=True):
            if one is not None:
                same(found, one)
    found = opened.axes[-1]
    assert (found.name, found.unit) == ("radius", axes[2].unit)
    assert found.offset == pytest.approx(found.scale / 2)


AXES = (
    Axis(name="y", unit="nm", scale=0.5, offset=2.0),
    Axis(name="x", unit="nm", scale=0.5),
    Axis(name="ky", unit="1/nm", scale=0.1, offset=-0.5),
    Axis(name="kx", unit="1/nm", scale=0.1, offset=-0.5),
)


@pytest.fixture
def file(tmp_path):
    return write(tmp_path / "scan.h5", AXES)


def typed(*udfs):
    return [part for udf in udfs for part in ("--udf", udf)]


def test_a_store_as_xarray_sees_it(file, tmp_path):
    xr = pytest.importorskip("xarray", reason="xarray is in the io extra")
    udfs = typed("radialprofile:n_bins=3", "radialprofile:n_bins=5", "com:r=4", "sum")
    call("run", file, *udfs, "--roi", "1:", "--out", tmp_path / "a.zarr")
    with xr.open_zarr(tmp_path / "a.zarr") as store:
        assert store["radialprofile_intensity"].dims == ("y", "x", "radius")
        assert store["radialprofile_2_intensity"].dims == ("y", "x", "radialprofile_2_radius")
        assert store["radialprofile_intensity"].attrs["units"] == "counts"
        assert "units" not in store["radialprofile_intensity_valid"].attrs
        assert store["radius"].attrs["units"] == "1/nm"
        assert store["radius"].size == 3
        assert store["component"].values.tolist() == ["y", "x"]
        assert store["com_field"].sel(component="x").dims == ("y", "x")
        np.testing.assert_allclose(store["y"], [2.0, 2.5, 3.0])


@pytest.mark.full
def test_signals_as_hyperspy_sees_them(file, tmp_path):
    hs = pytest.importorskip("hyperspy.api", reason="hyperspy is in the io extra")
    call("run", file, *typed("radialprofile:n_bins=3", "com:r=4"), "--out", tmp_path / "a.hspy")
    signals = {signal.metadata.General.title: signal for signal in hs.load(tmp_path / "a.hspy")}
    (radius,) = signals["radialprofile_intensity"].axes_manager.signal_axes
    assert (radius.name, radius.units) == ("radius", "1/nm")
    assert radius.offset == pytest.approx(radius.scale / 2)
    field = signals["com_field"].metadata
    assert field.Signal.quantity == "com_field (1/nm)"
    assert field.udfdask.labels.as_dictionary() == {"component": ["y", "x"]}


def test_positions_in_an_npz_file(file, tmp_path):
    call("run", file, *typed("radialprofile:n_bins=3", "com:r=4"), "--out", tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as arrays:
        radius = arrays["radius"]
        assert arrays["component"].tolist() == ["y", "x"]
        assert arrays["radialprofile_intensity"].shape[-1:] == radius.shape


def test_a_file_that_says_how_to_read_it(file, tmp_path):
    layout = ["--nav-shape", "3,4", "--sig-shape", "10,10", "--dtype", "uint16"]
    np.save(tmp_path / "scan.npy", DATA)
    for name, kind in ((file, "an HDF5 file"), (tmp_path / "scan.npy", "a NumPy file")):
        output = call("run", name, *layout, code=1)
        assert f"is {kind}, which says itself how to read it: leave out nav_shape" in output
    np.save(tmp_path / "renamed.dat", DATA)
    (tmp_path / "renamed.dat.npy").rename(tmp_path / "renamed.dat")
    output = call("run", tmp_path / "renamed.dat", "--dataset", "a", code=1)
    assert "dataset='a': the NumPy file renamed.dat holds one array" in output
    call("run", tmp_path / "scan.npy", *layout, "--offset", "128")
