"""The ellipse of a simulated ring is found, whatever its shape, and serves all UDFs of rings."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask import ArgumentTypeError, ArgumentValueError, UDFWarning
from udfdask.analyses import PolarUDF, RadialVarianceUDF, fit_ellipse
from udfdask.masks.polar import distance
from udfdask.udfs import FEMUDF, CoMUDF, RadialFourierUDF, RadialProfileUDF, VirtualDetectorUDF


def pattern(stretch=1.02, angle=25.0, *, size=128, counts=4000, width=4, center=(61.3, 66.8)):
    """An amorphous pattern: a ring of radius 30 on a background, and a weaker second one."""
    d = distance(*center[::-1], size, size, stretch, angle)
    rings = np.exp(-(((d - 30) / width) ** 2) / 2) + 0.35 * np.exp(-(((d - 51) / 6) ** 2) / 2)
    expected = counts * (rings + 0.3 * np.exp(-d / 30))
    return np.random.default_rng(0).poisson(expected)


def check(found, stretch, angle, center=(61.3, 66.8)):
    """A tenth of a percent, and a degree."""
    ellipse, _ = found
    assert ellipse.stretch == pytest.approx(stretch, abs=1e-3)
    assert (ellipse.stretch_angle - angle + 90) % 180 - 90 == pytest.approx(0, abs=1)
    assert ellipse.center == pytest.approx(center, abs=0.03)


@pytest.mark.parametrize("angle", [25, -80, 90, 0])
def test_two_percent_with_noise(angle):
    check(fit_ellipse(pattern(angle=angle), r_range=(20, 40)), 1.02, angle)


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("shift", [(0, 0), (4, -5)])
def test_sharp_and_broad_rings_from_afar(width, shift):
    found = fit_ellipse(
        pattern(1.1, 40, width=width), r_range=(18, 42), center=(61.3 + shift[0], 66.8 + shift[1])
    )
    check(found, 1.1, 40)


def test_several_rings_a_beam_stop_and_the_edge_of_the_frame():
    whole = pattern(1.05, 70).astype(float)
    whole[:, 62:72] = 0
    stop = np.ones(whole.shape, bool)
    stop[:, 62:72] = False
    check(fit_ellipse(whole, r_range=(20, 62), center=(61, 67), mask=stop), 1.05, 70)
    whole[~stop] = np.nan
    cut = whole[:, 30:]
    check(fit_ellipse(cut, r_range=(20, 62), center=(61, 37)), 1.05, 70, (61.3, 36.8))


def test_infinite_dose():
    ring = np.exp(-(((distance(31, 33, 64, 64, 1.02, 30) - 20) / 4) ** 2))
    (center, stretch, angle), residual = fit_ellipse(ring, r_range=(12, 28))
    assert center == pytest.approx((33, 31), abs=1e-3)
    assert (stretch, angle) == (pytest.approx(1.02, abs=1e-4), pytest.approx(30, abs=0.1))
    assert 0 <= residual < 1e-6
    circle, _ = fit_ellipse(np.exp(-(((distance(31, 33, 64, 64) - 20) / 4) ** 2)), r_range=(12, 28))
    assert circle.stretch == pytest.approx(1, abs=1e-4)


def test_lazy_patterns_and_all_udfs_of_rings():
    frames = da.from_array(pattern(1.08)[None].astype("u2"))
    ellipse, _ = fit_ellipse(frames[0], r_range=(20, 40))
    check((ellipse, 0), 1.08, 25)
    given = ellipse._asdict()
    udfs = [cls(**given, r=40) for cls in (RadialProfileUDF, PolarUDF, RadialVarianceUDF, CoMUDF)]
    udfs += [
        RadialFourierUDF(**given, r=34, ri=26, max_order=2),
        FEMUDF(**given, rad_in=28, rad_out=32),
    ]
    udfs.append(VirtualDetectorUDF("ring", **given, ri=20, ro=40))
    results = ud.compute(*ud.run_udf(frames, udfs))
    zero, _, second = abs(results[4]["coefficients"][0])
    assert second < 0.01 * zero  # round rings have no two-fold part
    round_rings = ud.run_udf(frames, FEMUDF(center=ellipse.center, rad_in=28, rad_out=32))
    assert results[5]["intensity"][0] < 0.7 * round_rings["intensity"][0].compute()


def test_noise_is_no_ring():
    noise = np.random.default_rng(0).poisson(100, (64, 64))
    with pytest.warns(UDFWarning, match="not sure"):
        fit_ellipse(noise, r_range=(10, 20), center=(32, 32))


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"r_range": (40, 20)}, ArgumentValueError),
        ({"r_range": (-3, 20)}, ArgumentValueError),
        ({"r_range": 20}, ArgumentTypeError),
        ({"r_range": ("a", "b")}, ArgumentTypeError),
        ({"r_range": (200, 220)}, ArgumentValueError),
        ({"r_range": (0, 1)}, ArgumentValueError),
        ({"center": (500, 500)}, ArgumentValueError),
        ({"center": 5}, ArgumentTypeError),
        ({"mask": np.zeros((128, 128), bool)}, ArgumentValueError),
        ({"pattern": np.ones((128, 128))}, ArgumentValueError),
        ({"pattern": np.ones(128)}, ArgumentValueError),
        ({"pattern": np.mgrid[:128, :128][0]}, ArgumentValueError),
    ],
)
def test_bad_input(wrong, error):
    given = {"pattern": pattern(), "r_range": (20, 40), "center": (61, 67), **wrong}
    with pytest.raises(error):
        fit_ellipse(given.pop("pattern"), **given)
