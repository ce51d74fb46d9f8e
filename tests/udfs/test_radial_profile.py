"""The mean over rings, against plain float64 NumPy."""

import math

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import udfdask as ud
from making import compute
from suites import examples, few_of
from udfdask import ArgumentTypeError, ArgumentValueError
from udfdask.testing import check_udf, raise_if_dask_computes
from udfdask.testing.strategies import chunkings, rois
from udfdask.udfs import CoMUDF, RadialProfileUDF

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


@st.composite
def cases(draw):
    shape = draw(st.tuples(*[st.integers(1, 4)] * 2, *[st.integers(1, 6)] * 2))
    inner = draw(st.sampled_from([0, 0.3, 1.5]))
    data = np.random.default_rng(draw(st.integers(0, 99))).integers(-5, 40, shape)
    center = st.tuples(st.floats(-1, shape[2]), st.floats(-1, shape[3]))
    n_frames = shape[0] * shape[1]
    own = draw(st.booleans())
    centers = draw(st.lists(center, min_size=n_frames, max_size=n_frames) if own else center)
    return {
        "data": data.astype(draw(st.sampled_from(few_of(["int16", "int32", "float64", ">f4"])))),
        "chunks": draw(chunkings(ud.Shape(shape, sig_dims=2))),
        "roi": draw(rois(shape[:2])),
        "tile": draw(st.sampled_from(["1 MiB", 64, 1])),
        "centers": np.reshape(centers, (*shape[:2], 2) if own else 2),
        "rings": {
            "r": inner + draw(st.floats(0.5, 8)),
            "ri": inner,
            "n_bins": draw(st.integers(1, 5)),
        },
    }


@given(cases())
@settings(deadline=None, max_examples=examples(60), suppress_health_check=list(HealthCheck))
@pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")
def test_chunks_tiles_and_regions_do_not_show(case):
    data, centers, rings, roi = (case[k] for k in ("data", "centers", "rings", "roi"))
    where = {"centers": centers}
    if centers.ndim == 1:
        where = {"cy": centers[0], "cx": centers[1]}
    wanted = plain(data, centers, **rings)
    own = centers.ndim > 1
    chosen = wanted[roi] if own and roi is not None else wanted
    assume((own and not chosen.size) or np.isfinite(chosen).any())  # that is an error
    with dask.config.set({"udfdask.tile-bytes": case["tile"]}):
        udf = RadialProfileUDF(**where, **rings)
        found = compute(da.from_array(data, chunks=case["chunks"]), udf, roi=roi)["intensity"]
    if roi is not None:
        wanted[~roi] = np.nan
    # where a ring has next to no weight, rounding of distances may take all of it
    sure = np.abs(np.nan_to_num(wanted, posinf=np.inf)) < 1e3
    both = np.isnan(found) == np.isnan(wanted)
    np.testing.assert_allclose(found[sure & both], wanted[sure & both], rtol=1e-6, atol=1e-6)
    assert not np.count_nonzero(~both & sure)


@pytest.mark.full
@pytest.mark.parametrize("own", [False, True])
def test_laws(own):
    data = np.random.default_rng(1).integers(-30, 60, (4, 6, 6, 8)).astype("int16")
    where = {"centers": np.random.default_rng(2).random((4, 6, 2)) * 6} if own else {"cy": 2.5}
    check_udf(RadialProfileUDF(**where, r=4, n_bins=3), data)


def test_centres_may_be_those_of_another_run():
    data = frames()
    x = da.from_array(data, chunks=(2, 3, 9, 12))
    with raise_if_dask_computes():
        com = ud.run_udf(x, CoMUDF())["raw_com"]
        profile = ud.run_udf(x, RadialProfileUDF(r=4, centers=com))["intensity"]
    centers, found = dask.compute(com, profile, scheduler="sync")
    np.testing.assert_allclose(found, plain(data, centers, 4, 0, 4), rtol=1e-10)


def test_centres_may_be_aux_data():
    data, centers = frames(), np.random.default_rng(1).integers(0, 9, (*NAV, 2))
    aux = ud.UDF.aux_data(centers, kind="nav", extra_shape=(2,), dtype=centers.dtype)
    found = compute(da.from_array(data), RadialProfileUDF(r=4, centers=aux), roi=(slice(1, 2),))
    np.testing.assert_allclose(found["intensity"][1], plain(data, centers, 4, 0, 4)[1])


def test_a_frame_without_a_centre_has_no_profile():
    centers = np.full((*NAV, 2), 4.0)
    centers[1, 2, 0], centers[0, 1, 1], centers[0, 0] = np.nan, np.inf, 1e300
    x = da.from_array(frames(), chunks=(2, 3, 9, 12))
    for rings in ({"r": 3}, {"r": 3, "n_bins": 12}):
        found = compute(x, RadialProfileUDF(**rings, centers=centers))["intensity"]
        nowhere = np.isnan(found).all(axis=-1)
        assert {(1, 2), (0, 1), (0, 0)} == set(map(tuple, np.argwhere(nowhere)))


@pytest.mark.full
@pytest.mark.parametrize("place", [{"cy": 4, "cx": 4}, {"centers": np.full((*NAV, 2), 4)}], ids=str)
def test_pixels_outside_of_the_rings_are_not_read(place):
    data = frames("f8")
    for rings in (
        {"r": 3, "ri": 1},
        {"r": 3, "ri": 1, "n_bins": 1},
        {"r": 3, "ri": 1, "n_bins": 8},
    ):
        udf = RadialProfileUDF(**place, **rings)
        want = compute(da.from_array(data), udf)["intensity"]
        spoilt = data.copy()
        spoilt[..., 4, 4] = np.nan
        spoilt[..., 4, 8] = np.inf
        np.testing.assert_array_equal(compute(da.from_array(spoilt), udf)["intensity"], want)


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
    ("parameters", "error", "message"),
    [
        ({"r": -1}, ArgumentValueError, "r must be 0 or more pixels, not -1"),
        ({"r": math.inf}, ArgumentValueError, "r must be a finite number"),
        ({"ri": -1}, ArgumentValueError, "ri must be 0 or more pixels"),
        ({"r": 2, "ri": 3}, ArgumentValueError, "ri must be smaller than r, but 3 >= 2"),
        ({"n_bins": 0}, ArgumentValueError, "n_bins must be at least 1, not 0"),
        ({"n_bins": 2.5}, ArgumentTypeError, "n_bins must be an integer, not 2.5"),
        ({"cy": "3"}, ArgumentTypeError, "cy must be a number of pixels, not '3' of type str"),
        ({"cy": "top"}, ArgumentTypeError, "cy must be a number of pixels"),
        ({"centers": np.ones((2, 2)), "cx": 1}, ArgumentValueError, "leave out cy and cx"),
        ({"centers": np.ones((2, 3))}, ArgumentValueError, r"shape \(\*nav, 2\), not \(2, 3\)"),
        ({"centers": np.ones((2, 2), complex)}, ArgumentTypeError, "real numbers .* complex128"),
        (
            {"centers": ud.UDF.aux_data(np.ones(4), kind="sig", dtype="f8")},
            ArgumentValueError,
            "of kind 'nav' with extra_shape",
        ),
    ],
    ids=str,
)
def test_wrong_parameters_are_named(parameters, error, message):
    with pytest.raises(error, match=message):
        RadialProfileUDF(**parameters)


def test_wrong_data_are_named_before_there_is_a_graph():
    with pytest.raises(ArgumentValueError, match="RadialProfileUDF works on 2-D frames"):
        ud.run_udf(da.ones((4, 9)), RadialProfileUDF(), sig_dims=1)
    with pytest.raises(ArgumentValueError, match="centers"):
        ud.run_udf(da.ones((4, 5, 9, 9)), RadialProfileUDF(centers=np.ones((4, 2))))


@pytest.mark.parametrize("off", [{"cy": 40, "r": 3}, {"cx": -4, "r": 3}, {"ri": 9, "r": 20}])
def test_rings_outside_of_the_frame(off):
    """Their means would all be NaN."""
    x = da.from_array(frames(sig=(9, 12)))
    with pytest.raises(ArgumentValueError, match=r"no pixel of frames .* lies in the rings from"):
        ud.run_udf(x, RadialProfileUDF(**off))
