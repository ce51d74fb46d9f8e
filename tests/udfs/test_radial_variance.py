"""Variances per ring are those of plain NumPy, and of noise what theory says."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask import ArgumentValueError
from udfdask.analyses import RadialVarianceUDF
from udfdask.masks import radial_bins

NAV, SIG = (4, 5), (12, 15)
RNG = np.random.default_rng(8)
DATA = RNG.integers(0, 900, (*NAV, *SIG)).astype("u2")
RINGS = {"r": 6, "ri": 1, "n_bins": 4}
CENTERS = np.array([5.3, 7.1]) + RNG.uniform(-2, 2, (*NAV, 2))
NAMES = ["mean", "variance_of_means", "mean_of_variances", "variance_of_pixels"]


def run(data, udf, chunks=(2, 3, 12, 15), **options):
    lazy = ud.run_udf(da.from_array(data, chunks=chunks), udf, sig_dims=2, **options)
    return lazy.compute(scheduler="sync")


def plain(frames, centers):
    """The definitions, in float64, of frames of shape (n, *sig)."""
    means, squares = [], []
    for frame, (cy, cx) in zip(frames.astype("f8"), centers, strict=True):
        weights = radial_bins(cx, cy, *SIG[::-1], 6, 1, 4, normalize=True, use_sparse=False)
        means.append(np.tensordot(weights, frame))
        squares.append(np.tensordot(weights, frame**2))
    m, q = np.array(means), np.array(squares)
    with np.errstate(invalid="ignore"):  # frames without intensity
        variances = q / m**2 - 1
    return {
        "mean": m.mean(axis=0),
        "variance_of_means": m.var(axis=0) / m.mean(axis=0) ** 2,
        "mean_of_variances": variances.mean(axis=0),
        "variance_of_pixels": q.mean(axis=0) / m.mean(axis=0) ** 2 - 1,
    }


@pytest.mark.parametrize("own", [False, True], ids=["one center", "own centers"])
@pytest.mark.parametrize("chunks", [(4, 5, 12, 15), (2, 3, 5, 4), (1, 1, 12, 15)], ids=str)
def test_definitions(own, chunks):
    centers = CENTERS if own else np.broadcast_to((5.3, 7.1), (*NAV, 2))
    place = {"centers": CENTERS} if own else {"center": (5.3, 7.1)}
    roi = RNG.random(NAV) < 0.7
    found = run(DATA, RadialVarianceUDF(**place, **RINGS), chunks, roi=roi)
    for name, wanted in plain(DATA[roi], centers[roi]).items():
        np.testing.assert_allclose(found[name], wanted, rtol=1e-10)
    assert (found["frames"] == roi.sum()).all()


def test_an_offset_and_many_chunks_cost_no_digits():
    """The squares of sums would lose all digits of a variance of 1e-14 of the squared mean."""
    ramp = np.linspace(-1, 1, 200)[:, None, None] * np.ones(SIG)
    found = run(1e6 + ramp, RadialVarianceUDF(**RINGS), (1, 12, 15))
    np.testing.assert_allclose(found["variance_of_means"], ramp[:, 0, 0].var() * 1e-12, rtol=1e-3)


def test_noise():
    """Poisson noise adds 1 / mean, and for means of rings that over the number of pixels."""
    frames = RNG.poisson(25, (4000, *SIG)).astype("u2")
    found = run(frames, RadialVarianceUDF(**RINGS), (500, 12, 15))
    weights = radial_bins(7, 6, *SIG[::-1], 6, 1, 4, normalize=True, use_sparse=False)
    share = (weights**2).sum(axis=(1, 2))  # 1 / number of pixels, if all had the same weight
    np.testing.assert_allclose(found["variance_of_pixels"], 1 / 25, rtol=0.02)
    np.testing.assert_allclose(found["mean_of_variances"], (1 - share) / 25, rtol=0.02)
    np.testing.assert_allclose(found["variance_of_means"], share / 25, rtol=0.1)


def test_what_is_not_there_is_left_out():
    data = DATA.astype("f4")
    data[0, 1] = 0  # has no variance of its own, but a mean
    data[2, 2, 6, 10] = np.nan  # in the second ring
    found = run(data, RadialVarianceUDF(**RINGS))
    assert found["frames"].tolist() == [20, 19, 20, 20]
    flat, bright = np.nan_to_num(data).reshape(-1, *SIG), np.arange(20) != 1
    wanted = plain(flat, [(6, 7)] * 20)
    with_light = plain(flat[bright], [(6, 7)] * 19)
    for ring in (0, 2, 3):
        assert found["mean"][ring] == pytest.approx(wanted["mean"][ring])
        assert found["variance_of_means"][ring] == pytest.approx(wanted["variance_of_means"][ring])
        here = found["mean_of_variances"][ring]
        assert here == pytest.approx(with_light["mean_of_variances"][ring])
    empty = run(data * np.nan, RadialVarianceUDF(**RINGS))
    assert all(np.isnan(empty[name]).all() for name in NAMES)


def test_axes_and_units():
    axes = [
        ud.Axis(name=name, unit=unit, scale=0.2)
        for name, unit in (("a", "nm"), ("b", "nm"), ("y", "1/nm"), ("x", "1/nm"))
    ]
    udf = RadialVarianceUDF(r="1.2 1/nm", n_bins=3)
    lazy = ud.run_udf(da.from_array(DATA), udf, axes=axes, unit="counts")
    (radius,) = lazy.extra_axes["variance_of_means"]
    assert (radius.unit, lazy.units["mean"], lazy.units["variance_of_means"]) == (
        "1/nm",
        "counts",
        "",
    )
    np.testing.assert_allclose(radius.positions(3), [0.2, 0.6, 1.0])


@pytest.mark.parametrize("wrong", [{"r": 1, "ri": 2}, {"cy": 90, "r": 3}, {"n_bins": 0, "r": 4}])
def test_wrong_parameters(wrong):
    with pytest.raises(ArgumentValueError):
        ud.run_udf(da.from_array(DATA), RadialVarianceUDF(**wrong))
