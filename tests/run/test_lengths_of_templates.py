"""Lengths and positions of templates and disks in the units of the axes."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask import Axis
from udfdask.masks import DiskTemplate
from udfdask.udfs import CorrelationUDF, CrystallinityUDF

FRAMES = np.random.default_rng(0).integers(0, 100, (4, 5, 16, 18)).astype("uint16")


def scan():
    return da.from_array(FRAMES, chunks=(2, 5, 16, 18))


def axes_in(unit, offset=-0.8, scale=0.1):
    """Axes of a scan in nm and of square pixels; the last one is descending."""
    return (
        Axis(name="y", unit="nm"),
        Axis(name="x", unit="nm"),
        Axis(name="ky", unit=unit, scale=scale, offset=offset),
        Axis(name="kx", unit=unit, scale=-scale, offset=-offset + scale),
    )


@pytest.mark.parametrize(
    ("in_units", "in_pixels"),
    [
        (
            {
                "peaks": ([(-0.3, 0.5), (0.2, -0.1)], "mrad"),
                "template": DiskTemplate(radius="0.2 mrad", radius_outer=(0.0003, "rad")),
                "steps": "0.21 mrad",
                "zero_shift": ("0.1 mrad", "-0.2 mrad"),
            },
            {
                "peaks": [(5, 4), (10, 10)],
                "template": DiskTemplate(radius=2, radius_outer=3),
                "steps": 3,
                "zero_shift": (1, 2),
            },
        ),
    ],
)
def test_disks_are_found_in_units(in_units, in_pixels):
    """One axis is descending: a shift along it changes its sign."""
    axes = axes_in("mrad")
    found = ud.run_udf(scan(), CorrelationUDF(**in_units), axes=axes).compute()
    wanted = ud.run_udf(scan(), CorrelationUDF(**in_pixels)).compute()
    for name in wanted:
        np.testing.assert_array_equal(found[name], wanted[name])


def test_the_zero_order_peak_in_units():
    axes = axes_in("mrad")
    udf = CrystallinityUDF(2, 6, real_center=("0 mrad", "0.1 mrad"), real_rad="0.3 mrad")
    found = ud.run_udf(scan(), udf, axes=axes)["intensity"].compute()
    plain = CrystallinityUDF(2, 6, real_center=(8, 8), real_rad=3)
    np.testing.assert_array_equal(found, ud.run_udf(scan(), plain)["intensity"].compute())
