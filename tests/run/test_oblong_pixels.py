"""Round and elliptical detectors in units, over pixels that are not square."""

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import udfdask as ud
from suites import examples
from udfdask import Axis
from udfdask.masks.polar import rounding_matrix, stretch_in_pixels
from udfdask.results.detectors import detector_masks
from udfdask.udfs import (
    FEMUDF,
    CoMUDF,
    RadialFourierUDF,
    RadialProfileUDF,
    SumUDF,
    VirtualDetectorUDF,
)

SIG = (40, 60)
DATA = np.random.default_rng(0).integers(1, 90, (2, 3, *SIG)).astype("uint16")
X = da.from_array(DATA, chunks=(1, 3, *SIG))
SY, SX = 0.2, -0.1  # a descending axis
CENTER = (18.0, 31.0)


def axes(sy=SY, sx=SX, unit_x="mrad"):
    scan = [Axis(name=name, unit="nm", scale=0.5) for name in "yx"]
    return (
        *scan,
        Axis(name="ky", unit="mrad", scale=sy, offset=-1),
        Axis(name="kx", unit=unit_x, scale=sx, offset=3),
    )


def squared_distance(sy, sx, stretch=1.0, stretch_angle=0.0):
    """The squared distance in units, where the ellipse is round."""
    t = np.radians(stretch_angle)
    y, x = np.indices(SIG)
    dy, dx = (y - CENTER[0]) * abs(sy), (x - CENTER[1]) * abs(sx)
    along = (dx * np.cos(t) + dy * np.sin(t)) ** 2 / stretch
    return along + (dy * np.cos(t) - dx * np.sin(t)) ** 2 * stretch


def mask_of(udf, sy=SY, sx=SX):
    info = ud.run_udf(X, SumUDF(), axes=axes(sy, sx))._info
    (mask,) = detector_masks(info, udf).values()
    return mask


@settings(max_examples=examples(60))
@given(
    sy=st.floats(0.05, 2),
    sx=st.floats(0.05, 2),
    stretch=st.floats(1, 4),
    angle=st.floats(-400, 400),
)
def test_ellipses_in_pixels(sy, sx, stretch, angle):
    """The same ellipse, with the radius R / sqrt(sy * sx)."""
    ratio, turned = stretch_in_pixels(stretch, angle, sy, sx)
    assert ratio >= 1
    yy, yx, xx = rounding_matrix(ratio, turned)
    np.testing.assert_allclose(yy * xx - yx**2, 1, rtol=1e-9)
    t = np.linspace(0, 6, 50)
    dy, dx = np.sin(t), np.cos(t)
    in_pixels = (yy * dy + yx * dx) ** 2 + (yx * dy + xx * dx) ** 2
    yy, yx, xx = rounding_matrix(stretch, angle)
    in_units = (yy * sy * dy + yx * sx * dx) ** 2 + (yx * sy * dy + xx * sx * dx) ** 2
    np.testing.assert_allclose(in_pixels * sy * sx, in_units, rtol=1e-8)


ELLIPSES = [{}, {"stretch": 1.4, "stretch_angle": 35.0}]


@pytest.mark.parametrize("ellipse", ELLIPSES, ids=["round", "ellipse"])
@pytest.mark.parametrize("unit", ["mrad", "rad"])
def test_rings_in_units(ellipse, unit):
    d2 = squared_distance(SY, SX, **ellipse)
    if not ellipse:  # pixels are on both edges
        assert (np.abs(d2[..., np.newaxis] - (0.64, 4.41)).min(axis=(0, 1)) < 1e-12).all()
    factor = {"mrad": 1, "rad": 1e-3}[unit]
    low, high = f"{0.8 * factor} {unit}", (2.1 * factor, unit)
    place = {"cy": CENTER[0], "cx": CENTER[1]}
    inner, outer = 0.64 + 1e-9, 4.41 + 1e-9
    ring = (d2 > inner) & (d2 <= outer)
    for udf in (
        VirtualDetectorUDF("ring", ri=low, ro=high, **place, **ellipse),
        CoMUDF(ri=low, r=high, **place, **ellipse),
        FEMUDF(CENTER, low, high, **ellipse),
    ):
        np.testing.assert_array_equal(mask_of(udf), ring)
    for udf in (
        VirtualDetectorUDF("disk", r=high, **place, **ellipse),
        CoMUDF(r=high, ri=0, **place, **ellipse),
    ):
        np.testing.assert_array_equal(mask_of(udf), d2 <= outer)
    outside = VirtualDetectorUDF("ring", ri=low, ro=np.inf, **place, **ellipse)
    np.testing.assert_array_equal(mask_of(outside), d2 > inner)


@pytest.mark.parametrize("ellipse", ELLIPSES, ids=["round", "ellipse"])
def test_results_in_units(ellipse):
    d = np.sqrt(squared_distance(SY, SX, **ellipse))
    frames = np.broadcast_to(d, (2, 3, *SIG))
    x = da.from_array(frames, chunks=(1, 3, *SIG))
    place = {"cy": CENTER[0], "cx": CENTER[1]}
    own = {"centers": np.broadcast_to(CENTER, (2, 3, 2))}
    for where in (place, own):
        udf = RadialProfileUDF(ri="0.5 mrad", r="2.5 mrad", n_bins=8, **where, **ellipse)
        result = ud.run_udf(x, udf, axes=axes())
        (radius,) = result.extra_axes["intensity"]
        assert radius.unit == "mrad"
        np.testing.assert_allclose(radius.positions(8), 0.625 + 0.25 * np.arange(8))
        # the mean distance in a ring is its radius
        np.testing.assert_allclose(
            result["intensity"].compute()[0, 0], radius.positions(8), atol=0.03
        )


def test_the_strength_of_a_symmetry_in_units():
    """A ring that is round in units has no two-fold symmetry."""
    d = np.sqrt(squared_distance(SY, SX))
    frames = np.broadcast_to(np.exp(-((d - 1.5) ** 2) / 0.1), (1, 1, *SIG))
    x = da.from_array(frames, chunks=(1, 1, *SIG))
    for r, round_ in (("2.4 mrad", True), (16, False)):
        udf = RadialFourierUDF(cy=CENTER[0], cx=CENTER[1], r=r, max_order=2)
        c = abs(ud.run_udf(x, udf, axes=axes())["coefficients"].compute()[0, 0])
        assert (c[2] / c[0] < 0.02) == round_
