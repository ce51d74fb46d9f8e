"""Frames in polar coordinates conserve intensities, and straighten the rings of an ellipse."""

import dask.array as da
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import udfdask as ud
from suites import examples
from udfdask import ArgumentTypeError, ArgumentValueError
from udfdask.analyses import PolarMeanUDF, PolarUDF
from udfdask.masks.bins import find_members
from udfdask.masks.polar import distance
from udfdask.udfs import RadialProfileUDF
from udfdask.udfs.polar import find_cells

NAV, SIG = (3, 4), (12, 15)
RNG = np.random.default_rng(3)
DATA = RNG.integers(0, 900, (*NAV, *SIG)).astype("u2")
CENTERS = np.array([5.3, 7.1]) + RNG.uniform(-2, 2, (*NAV, 2))
CELLS = {"r": 6.5, "ri": 1, "n_bins": 4, "n_angles": 7}
ELLIPSE = {"stretch": 1.2, "stretch_angle": 30}
PLACES = [{"cy": 5.3, "cx": 7.1}, {"centers": CENTERS}]
places = pytest.mark.parametrize("place", PLACES, ids=["one center", "own centers"])


def run(udf, chunks=(2, 3, 12, 15), **options):
    options.setdefault("sig_dims", 2)
    return ud.run_udf(da.from_array(DATA, chunks=chunks), udf, **options).compute(scheduler="sync")


def plain_cells(center, sig, r, ri, n_bins, n_angles):
    """The weight of each pixel in each cell, shape (rings, angles, *sig): arcs are sampled."""
    y, x = np.indices(sig)
    dy, dx = y - center[0], x - center[1]
    d, phi = np.hypot(dy, dx), np.arctan2(dy, dx)
    width = (r - ri) / n_bins
    ring = [np.clip(width / 2 + 0.5 - abs(d - ri - (b + 0.5) * width), 0, 1) for b in range(n_bins)]
    weights = np.zeros((n_bins, n_angles, *sig))
    for along in np.linspace(-0.5, 0.5, 801)[1::2]:
        angle = np.floor((phi + along / d) / (2 * np.pi) * n_angles).astype(int) % n_angles
        for b in range(n_bins):
            np.add.at(weights[b], (angle, y, x), ring[b] / 400)
    return weights


def dense(members, rows):
    """The weights of `BinMembers` as an array, shape (rows, *sig)."""
    weights = np.zeros((rows, *SIG))
    row = np.repeat(np.arange(rows), np.diff(members.bounds))
    np.add.at(weights, (row, members.y, members.x), members.weight)
    return weights


def test_cells_are_products_of_rings_and_arcs():
    shape = CELLS["r"], CELLS["ri"], CELLS["n_bins"], CELLS["n_angles"]
    weights = dense(find_cells((5.3, 7.1), SIG, *shape), 28).reshape(4, 7, *SIG)
    np.testing.assert_allclose(weights, plain_cells((5.3, 7.1), SIG, *shape), atol=4e-3)
    found = run(PolarUDF(cy=5.3, cx=7.1, **CELLS))["intensity"]
    wanted = np.einsum("baij,yxij->yxba", weights, DATA) / weights.sum(axis=(2, 3))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@settings(max_examples=examples(100))
@given(
    center=st.tuples(*[st.floats(-3, 14) | st.integers(0, 11)] * 2),
    radii=st.tuples(st.floats(0, 4), st.floats(0.2, 9)),
    counts=st.tuples(st.integers(1, 6), st.integers(1, 9)),
    ellipse=st.tuples(st.floats(1, 1.5), st.floats(-90, 90)),
)
@example(center=(0.0, 1e-309), radii=(0.0, 1.0), counts=(1, 1), ellipse=(1.0, 0.0))
def test_the_cells_of_a_ring_share_its_pixels(center, radii, counts, ellipse):
    ri, thickness = radii
    rings = dense(find_members(center, SIG, ri + thickness, ri, counts[0], *ellipse), counts[0])
    cells = find_cells(center, SIG, ri + thickness, ri, *counts, *ellipse)
    assert (cells.weight > -1e-12).all()
    of_cells = dense(cells, counts[0] * counts[1]).reshape(*counts, *SIG)
    np.testing.assert_allclose(of_cells.sum(axis=1), rings, atol=1e-12)


@places
def test_the_mean_over_angles_is_the_radial_profile(place):
    rings = {name: value for name, value in CELLS.items() if name != "n_angles"}
    polar = run(PolarUDF(**place, **CELLS, **ELLIPSE))["intensity"]
    profile = run(RadialProfileUDF(**place, **rings, **ELLIPSE))["intensity"]
    for at in np.ndindex(NAV):
        center = CENTERS[at] if "centers" in place else (5.3, 7.1)
        cells = find_cells(center, SIG, *CELLS.values(), *ELLIPSE.values())
        weights = cells.totals.reshape(4, 7)
        found = np.nansum(polar[at] * weights, axis=1) / weights.sum(axis=1)
        np.testing.assert_allclose(found, profile[at], rtol=1e-6)


@places
def test_cuts_regions_and_schedulers(place):
    whole = run(PolarUDF(**place, **CELLS), (3, 4, 12, 15))["intensity"]
    roi = RNG.random(NAV) < 0.6
    for chunks in ((1, 2, 12, 15), (2, 3, 5, 4)):
        found = run(PolarUDF(**place, **CELLS), chunks, roi=roi)["intensity"]
        np.testing.assert_allclose(found[roi], whole[roi], rtol=1e-6)
        assert np.isnan(found[~roi]).all()
    mean = run(PolarMeanUDF(**place, **CELLS), (2, 3, 5, 4), roi=roi)["intensity"]
    one = {**place, "centers": CENTERS[roi]} if "centers" in place else place
    selected = ud.run_udf(da.from_array(DATA[roi]), PolarMeanUDF(**one, **CELLS))["intensity"]
    np.testing.assert_allclose(mean, selected.compute(), rtol=1e-12)


def test_the_mean_is_that_of_the_frames():
    found = run(PolarMeanUDF(cy=5.3, cx=7.1, **CELLS))["intensity"]
    frames = run(PolarUDF(cy=5.3, cx=7.1, **CELLS))["intensity"]
    np.testing.assert_allclose(found, frames.mean(axis=(0, 1)), rtol=1e-6)
    assert found.dtype == np.float64


def test_frames_without_a_center_are_left_out():
    centers = CENTERS.copy()
    centers[1, 2] = np.nan, 3
    polar = run(PolarUDF(centers=centers, **CELLS))["intensity"]
    assert np.isnan(polar[1, 2]).all()
    roi = np.isfinite(centers).all(axis=-1)
    with_it = run(PolarMeanUDF(centers=centers, **CELLS))["intensity"]
    without = run(PolarMeanUDF(centers=centers, **CELLS), roi=roi)["intensity"]
    np.testing.assert_allclose(with_it, without, rtol=1e-12)


def test_rings_of_an_ellipse_become_straight():
    d = distance(31, 33, 64, 64, stretch=1.1, stretch_angle=40)
    frame = da.from_array(100 * np.exp(-(((d - 20) / 5) ** 2)))
    found = ud.run_udf(frame, PolarUDF(cx=31, cy=33, r=28, stretch=1.1, stretch_angle=40))
    polar = found["intensity"].compute()
    assert np.ptp(polar[17:23], axis=1).max() < 8  # pixels do not lie evenly in a ring
    assert np.isfinite(polar[3:]).all()
    round_ones = ud.run_udf(frame, PolarUDF(cx=31, cy=33, r=28))["intensity"].compute()
    assert np.ptp(round_ones[17:23], axis=1).max() > 30


def test_nan_outside_of_the_frame():
    found = run(PolarUDF(cy=0, cx=0, r=6, n_bins=3, n_angles=8))["intensity"]
    assert np.isnan(found[..., 2, 3:7]).all()
    assert np.isfinite(found[..., :2]).all()


def test_axes_have_units():
    axes = [
        ud.Axis(name=name, unit=unit, scale=0.5)
        for name, unit in (("a", "nm"), ("b", "nm"), ("y", "mrad"), ("x", "mrad"))
    ]
    udf = PolarUDF(cy="2 mrad", cx="3 mrad", r="3 mrad", n_bins=3, n_angles=4)
    lazy = ud.run_udf(da.from_array(DATA), udf, axes=axes, unit="counts")
    radius, angle = lazy.extra_axes["intensity"]
    assert (radius.unit, angle.unit, lazy.units["intensity"]) == ("mrad", "deg", "counts")
    np.testing.assert_allclose(radius.positions(3), [0.5, 1.5, 2.5])
    np.testing.assert_allclose(angle.positions(4), [45, 135, 225, 315])


@pytest.mark.parametrize("udf", [PolarUDF, PolarMeanUDF])
@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"n_angles": 0}, ArgumentValueError),
        ({"n_angles": 2.5}, ArgumentTypeError),
        ({"r": 1, "ri": 2}, ArgumentValueError),
        ({"cy": 90, "r": 3}, ArgumentValueError),
        ({"stretch": 0.9}, ArgumentValueError),
        ({"centers": np.zeros((2, 2))}, ArgumentValueError),
    ],
)
def test_wrong_parameters(udf, wrong, error):
    with pytest.raises(error):
        ud.run_udf(da.from_array(DATA), udf(**wrong))
