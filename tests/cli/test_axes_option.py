"""``--axes``: axes of files that do not describe them."""

import numpy as np
import pytest

import udfdask as ud
from commands import call
from udfdask.cli.data_options import to_axes
from udfdask.udfs import VirtualDetectorUDF

FRAMES = np.random.default_rng(3).integers(0, 50, (4, 6, 16, 12)).astype("uint16")
RAW = ["scan.raw", "--nav-shape", "4,6", "--sig-shape", "16,12", "--dtype", "u2", "--offset", "256"]
AXES = "y=2nm, x = 2 nm,ky=0.5 mrad @ -4,kx=0.5mrad@-3"


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scan.raw").write_bytes(bytes(256) + FRAMES.tobytes())
    np.save(tmp_path / "spectra.npy", FRAMES.reshape(24, 192))


def test_lengths_in_the_unit_of_the_axes_and_axes_on_the_results():
    call(
        "run",
        *RAW,
        "--axes",
        AXES,
        "--udf",
        "disk,r=2mrad,cy=0mrad,cx=0mrad",
        "--out",
        "a.zarr",
    )
    found = ud.io.open_file("a.zarr", dataset="disk_intensity")
    assert [(axis.name, axis.unit, axis.scale) for axis in found.axes] == [
        ("y", "nm", 2.0),
        ("x", "nm", 2.0),
    ]
    axes = [ud.Axis(name=n, unit="nm", scale=2.0) for n in "yx"]
    axes += [ud.Axis(name="ky", unit="mrad", scale=0.5, offset=-4.0)]
    axes += [ud.Axis(name="kx", unit="mrad", scale=0.5, offset=-3.0)]
    scan = ud.io.from_raw("scan.raw", nav_shape=(4, 6), sig_shape=(16, 12), dtype="u2", offset=256)
    disk = VirtualDetectorUDF("disk", r="2 mrad", cy="0 mrad", cx="0 mrad")
    expected = ud.run_udf(scan, disk, sig_dims=2, axes=axes)["intensity"]
    np.testing.assert_array_equal(found.array, expected)


def test_an_axis_that_is_only_numbered_and_one_that_starts_elsewhere():
    frame, energy = to_axes("frame, E=0.5eV@400")
    assert frame == ud.Axis(name="frame")
    assert energy == ud.Axis(name="E", unit="eV", scale=0.5, offset=400.0)
    options = ["--sig-dims", "1", "--axes", "frame,E=0.5eV@400", "--udf"]
    call("run", "spectra.npy", *options, "window,start=410eV,stop=420eV", "--out", "a.npz")
    with np.load("a.npz") as arrays:
        (found,) = (arrays[name] for name in arrays if name.endswith("intensity"))
    np.testing.assert_array_equal(found, FRAMES.reshape(24, 192)[:, 20:40].sum(axis=1))


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("y=2nm", 2, "--axes has 1 axes, but the data of shape (4, 6, 16, 12) have 4"),
        ("y=2nm,x=2nm,y=1mrad,kx=1mrad", 2, "--axes has the same name twice: y, x, y, kx"),
        ("2nm,x,ky,kx", 2, "'2nm' is not an axis: write NAME=STEP with a unit"),
        ("y=2,x,ky,kx", 2, "'y=2' is not an axis"),
        ("y=2px,x,ky,kx", 2, "'y=2px' is not an axis"),
        ("y=2nm@there,x,ky,kx", 2, "'y=2nm@there' is not an axis"),
        ("y=0nm,x,ky,kx", 2, "'y=0nm' is not an axis"),
        ("y=2nm@inf,x,ky,kx", 2, "'y=2nm@inf' is not an axis"),
        ("", 2, "'' is not an axis"),
    ],
)
def test_mistakes(text, code, message):
    assert message in call("explain", *RAW, "--axes", text, code=code)


def test_a_length_without_a_unit_of_the_data_names_the_option():
    output = call("explain", *RAW, "--udf", "disk,r=2mrad", code=1)
    assert "the axis 'sig_y' of the data has no unit: give pixels, or the axes" in output
