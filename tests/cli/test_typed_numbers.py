"""Errors show lengths in their units and in pixels, and give no advice in Python."""

import hyperspy.api as hs
import numpy as np
import pytest
from click.testing import CliRunner

from udfdask.cli import main


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    signal = hs.signals.Signal2D(np.ones((3, 4, 16, 16), "u2"))
    for axis in signal.axes_manager.signal_axes:
        axis.units, axis.scale = "mrad", 0.4
    path = tmp_path_factory.mktemp("typed") / "scan.hspy"
    signal.save(path)
    return str(path)


@pytest.mark.parametrize(
    ("args", "lengths"),
    [
        (["--detector", "disk,cy=50mrad,r=1.2mrad"], ["cy = 50 mrad is 125 px", "r = 1.2 mrad"]),
        (["--udf", "com:cy=50.2mrad,cx=1mrad"], ["cy = 50.2 mrad", "0 to 6 mrad"]),
        (["--detector", "ring,ri=7.7mrad,ro=7.8mrad"], ["ri = 7.7 mrad is 19.25 px", "7.8 mrad"]),
    ],
)
def test_lengths_in_units(file, args, lengths):
    result = CliRunner().invoke(main, ["run", file, *args])
    assert result.exit_code == 1
    assert "frames have" in result.output
    for words in lengths:
        assert words in " ".join(result.output.split())


def test_numbers_of_pixels_stay(file):
    result = CliRunner().invoke(main, ["run", file, "--detector", "disk,cy=90,r=2"])
    assert "cy=90, r=2: numbers are in pixels" in result.output


def test_a_file_without_units(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((3, 4, 8, 8)))
    args = ["run", str(tmp_path / "a.npy"), "--detector", "ring,ri=5mrad,ro=9mrad"]
    result = CliRunner().invoke(main, args)
    assert 'give pixels, or the axes of the data: --axes "y=2 nm' in " ".join(result.output.split())
    assert "udfdask.Axis" not in result.output


def test_channels_without_python_advice(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((3, 4, 8)))
    args = ["--sig-dims", "1", "--detector", "window,start=9,stop=12"]
    result = CliRunner().invoke(main, ["run", str(tmp_path / "a.npy"), *args])
    assert "within 0 and 8, in channels" in result.output
    assert "to_pixels" not in result.output
