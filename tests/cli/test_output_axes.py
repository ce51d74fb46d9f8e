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


ONE_ARRAY = [
    (["scan.npy", "--dataset", "sum"], "a .npy file holds one array and no datasets"),
    (["scan.npy", "--storage-option", "anon=true"], "--storage-option is for a URL, but scan.npy"),
    (["scan.toml", "--dataset", "0"], "a .toml file holds one array"),
    (
        ["scan.raw", "--dataset", "a", "--dtype", "u1", "--nav-shape", "3", "--sig-shape", "4"],
        "a raw file holds one array and no datasets: leave out --dataset",
    ),
    (["https://localhost/scan.npy?a=b", "--dataset", "a"], "holds one array"),
]


@pytest.mark.parametrize(("options", "words"), ONE_ARRAY, ids=[one[0][0] for one in ONE_ARRAY])
def test_options_that_a_format_would_ignore(options, words):
    output = call("explain", *options, code=2)  # no file exists
    assert words in output
    assert "Usage" in output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--every", "3"], "--every needs --live"),
        (["--insecure-scheduler"], "--insecure-scheduler needs --scheduler with an address"),
    ],
)
def test_options_that_a_run_would_ignore(options, words):
    assert words in call("run", "no.npy", *options, code=2)


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


def test_detectors_over_the_sum_of_a_picture(file, tmp_path, monkeypatch):
    drawn = {}

    def save(path, panels, **options):
        drawn.update({panel.title: panel.outlines for panel in panels})

    monkeypatch.setattr("udfdask.cli.live.save_picture", save)
    detectors = ["--udf", "disk,r=3", "--udf", "ring,ri=0.3 1/nm,ro=0.5 1/nm"]
    call("run", file, "--udf", "sum", "--udf", "logsum", *detectors, "--plot", tmp_path / "a.png")
    assert list(drawn["sum: intensity"]) == ["disk", "ring (cut by the edge)"]
    assert not drawn["logsum: logsum"]
    assert drawn["sum: intensity"]["disk"].sum() == 29


def test_windows_over_the_spectrum_of_a_picture(tmp_path, monkeypatch):
    drawn = {}

    def save(path, panels, **options):
        drawn.update({panel.title: panel.outlines for panel in panels})

    monkeypatch.setattr("udfdask.cli.live.save_picture", save)
    np.save(tmp_path / "spectra.npy", np.arange(2 * 3 * 20).reshape(2, 3, 20))
    udfs = ["--udf", "sum", "--udf", "edge=window:start=4,stop=9"]
    options = ["--sig-dims", "1", "--plot", tmp_path / "a.png"]
    call("run", tmp_path / "spectra.npy", *udfs, *options)
    (name, mask), *others = drawn["sum: intensity"].items()
    assert (name, np.flatnonzero(mask).tolist(), others) == ("edge", [4, 5, 6, 7, 8], [])
