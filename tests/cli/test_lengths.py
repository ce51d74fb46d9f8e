"""Errors show lengths in their units and in pixels."""

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
        (["--udf", "disk:cy=50mrad,r=1.2mrad"], ["cy = 50 mrad is 125 px", "r = 1.2 mrad"]),
        (["--udf", "com:cy=50.2mrad,cx=1mrad"], ["cy = 50.2 mrad", "0 to 6 mrad"]),
        (["--udf", "ring:ri=7.7mrad,ro=7.8mrad"], ["ri = 7.7 mrad is 19.25 px", "7.8 mrad"]),
    ],
)
def test_lengths_in_units(file, args, lengths):
    result = CliRunner().invoke(main, ["run", file, *args])
    assert result.exit_code == 1
    assert "frames have" in result.output
    for words in lengths:
        assert words in " ".join(result.output.split())


def test_numbers_of_pixels_stay(file):
    result = CliRunner().invoke(main, ["run", file, "--udf", "disk:cy=90,r=2"])
    assert "cy=90, r=2: numbers are in pixels" in result.output
