"""The mean over rings, against plain float64 NumPy."""

import math

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import compute
from udfdask import ArgumentTypeError, ArgumentValueError
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import RadialProfileUDF

NAV, SIG = (3, 5), (9, 12)


def frames(dtype="uint16", nav=NAV, sig=SIG):
    return np.random.default_rng(0).integers(0, 90, (*nav, *sig)).astype(dtype)


def plain_profile(frame, cy, cx, r, ri, n_bins):
    """One frame, one ring and one pixel at a time.

    It is inf where rounding decides whether there is any pixel in a ring.
    """
    width = (r - ri) / n_bins
    profile = np.empty(n_bins)
    for b in range(n_bins):
        total = weights = 0.0
        on_the_edge = False
        for y, x in np.ndindex(*frame.shape):
            d = math.hypot(y - cy, x - cx)
            w = width / 2 + 0.5 - abs(d - ri - (b + 0.5) * width)
            on_the_edge |= abs(w) < 1e-12
            w = min(1, max(0, w))
            if b == 0 and ri < 0.5 and d < 0.5:
                w = 1 - ri
            if w > 1e-12:
                total += w * float(frame[y, x])
                weights += w
        nothing = math.inf if on_the_edge else math.nan
        profile[b] = total / weights if weights else nothing
    return profile


def plain(data, centers, r, ri, n_bins):
    """All frames; one center, or one for each."""
    nav = data.shape[:-2]
    centers = np.broadcast_to(centers, (*nav, 2))
    found = [plain_profile(data[p], *centers[p], r, ri, n_bins) for p in np.ndindex(*nav)]
    return np.reshape(found, (*nav, n_bins))


CASES = [
    {"cy": 4, "cx": 6, "r": 5, "ri": 0, "n_bins": 5},
    {"cy": 3.3, "cx": 7.7, "r": 4, "ri": 1.5, "n_bins": 1},
    {"cy": 4, "cx": 5, "r": 3, "ri": 0.2, "n_bins": 9},  # thinner than a pixel
    {"cy": -2, "cx": 15, "r": 12, "ri": 0, "n_bins": 4},  # the first ring lies outside
]


@pytest.mark.full
@pytest.mark.parametrize("own", [False, True], ids=["common center", "own centers"])
@pytest.mark.parametrize("parameters", CASES, ids=str)
def test_means_follow_the_formula(parameters, own):
    data, given = frames(), dict(parameters)
    center = given.pop("cy"), given.pop("cx")
    place = {"cy": center[0], "cx": center[1]}
    if own:
        place = {"centers": np.broadcast_to(np.array(center, dtype=float), (*NAV, 2))}
    x = da.from_array(data, chunks=(2, 3, 5, 12))
    found = compute(x, RadialProfileUDF(**place, **given))["intensity"]
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, plain(data, center, **given), rtol=1e-10)


@pytest.mark.full
@pytest.mark.parametrize("dtype", ["u1", "i2", "u4", "i8", "f2", "f4", "f8", "g", "?", ">u2"])
def test_every_real_dtype(dtype):
    data = frames("int64").astype(dtype)
    x = da.from_array(data, chunks=(3, 2, 9, 5))
    wanted = plain(data, (4, 6), 5, 0, 5)
    for place in ({}, {"centers": np.broadcast_to((4, 6), (*NAV, 2))}):
        found = compute(x, RadialProfileUDF(**place, r=5))["intensity"]
        np.testing.assert_allclose(found, wanted, rtol=1e-10)


@pytest.mark.parametrize("sig", [(9, 12), (2, 2), (1, 1), (1, 30), (64, 64)])
def test_by_default_rings_cover_the_frame_and_none_is_empty(sig):
    y, x = np.ogrid[: sig[0], : sig[1]]
    d = np.hypot(y - sig[0] // 2, x - sig[1] // 2)
    data = np.stack([np.ones(sig), d])
    result = ud.run_udf(da.from_array(data, chunks=(1, *sig)), RadialProfileUDF())
    ones, distance = result["intensity"].compute()
    np.testing.assert_allclose(ones, 1)
    assert len(ones) - 1 <= d.max() + 0.5 <= len(ones)
    # a ring a pixel wide with soft edges reaches a pixel around its middle
    (axis,) = result.extra_axes["intensity"]
    assert (axis.name, axis.unit, axis.offset, axis.scale) == ("radius", "px", 0.5, 1)
    assert np.abs(distance - np.arange(len(ones)) - 0.5).max() <= 1


def test_the_axis_says_where_rings_are():
    udf = RadialProfileUDF(r=8, ri=2, n_bins=3)
    (axis,) = ud.run_udf(da.ones((2, 2, 9, 9)), udf).extra_axes["intensity"]
    assert (axis.offset, axis.scale) == (3, 2)


def test_centres_may_be_aux_data():
    data, centers = frames(), np.random.default_rng(1).integers(0, 9, (*NAV, 2))
    aux = ud.UDF.aux_data(centers, kind="nav", extra_shape=(2,), dtype=centers.dtype)
    found = compute(da.from_array(data), RadialProfileUDF(r=4, centers=aux), roi=(slice(1, 2),))
    np.testing.assert_allclose(found["intensity"][1], plain(data, centers, 4, 0, 4)[1])


def test_a_lazy_centre_needs_a_radius():
    lazy = da.ones(()) * 4
    with raise_if_dask_computes():
        udf = RadialProfileUDF(cy=lazy, r=4)
        result = ud.run_udf(da.from_array(frames()), udf)
        with pytest.raises(ArgumentTypeError, match="r is required if cy or cx is lazy"):
            ud.run_udf(da.from_array(frames()), RadialProfileUDF(cy=lazy))
        with pytest.raises(ArgumentTypeError, match="r must be a number, not a lazy Array"):
            RadialProfileUDF(r=lazy)
    np.testing.assert_allclose(result["intensity"].compute(), plain(frames(), (4, 6), 4, 0, 4))


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"r": -1}, ArgumentValueError),
        ({"r": math.inf}, ArgumentValueError),
        ({"ri": -1}, ArgumentValueError),
        ({"r": 2, "ri": 3}, ArgumentValueError),
        ({"n_bins": 0}, ArgumentValueError),
        ({"n_bins": 2.5}, ArgumentTypeError),
        ({"cy": "3"}, ArgumentTypeError),
        ({"cy": "top"}, ArgumentTypeError),
        ({"centers": np.ones((2, 2)), "cx": 1}, ArgumentValueError),
        ({"centers": np.ones((2, 3))}, ArgumentValueError),
        ({"centers": np.ones((2, 2), complex)}, ArgumentTypeError),
        ({"centers": ud.UDF.aux_data(np.ones(4), kind="sig", dtype="f8")}, ArgumentValueError),
    ],
    ids=str,
)
def test_wrong_parameters_are_named(parameters, error):
    with pytest.raises(error):
        RadialProfileUDF(**parameters)


def test_wrong_data_are_named_before_there_is_a_graph():
    with pytest.raises(ArgumentValueError, match="RadialProfileUDF works on 2-D frames"):
        ud.run_udf(da.ones((4, 9)), RadialProfileUDF(), sig_dims=1)
    with pytest.raises(ArgumentValueError, match="centers"):
        ud.run_udf(da.ones((4, 5, 9, 9)), RadialProfileUDF(centers=np.ones((4, 2))))
