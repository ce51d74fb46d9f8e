"""NeighborAverageUDF against sums over shifted copies of the whole scan."""

import dask.array as da
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import ndimage, signal

import udfdask as ud
from plain_neighbors import BOUNDARIES, neighbors, scans
from suites import examples
from udfdask.udfs import NeighborAverageUDF

# small chunks of large frames
pytestmark = pytest.mark.filterwarnings("ignore:.*task:udfdask.UDFWarning")

SHAPE = (5, 6, 4, 3)
DATA = np.random.default_rng(0).integers(0, 4000, SHAPE).astype("uint16")
CHUNKS = [SHAPE, (2, 6, 4, 3), (2, 4, 4, 3), (1, 1, 4, 3), (5, 3, 2, 3)]


def expected(data, nav_dims, weights, boundary="mask", normalize=True):
    """The formula in float64, or complex128."""
    wide = data.astype(np.result_type(data.dtype, np.float64))
    total, share = np.zeros_like(wide), np.zeros(data.shape[:nav_dims])
    for index, frames, exists in neighbors(wide, nav_dims, weights.shape, boundary):
        total += weights[index] * frames
        share += weights[index] * exists
    share = share.reshape(share.shape + (1,) * (data.ndim - nav_dims))
    with np.errstate(invalid="ignore"):
        return total / share if normalize else total


def average(x, *args, roi=None, sig_dims=2, **options):
    res = ud.run_udf(x, NeighborAverageUDF(*args, **options), roi=roi, sig_dims=sig_dims)
    return res["intensity"].compute(scheduler="synchronous")


@settings(deadline=None, max_examples=examples(60), suppress_health_check=list(HealthCheck))
@given(scan=scans(), boundary=st.sampled_from(BOUNDARIES), n=st.sampled_from([1, 3, 5]))
def test_any_scan(scan, boundary, n):
    data, nav_dims, chunks, roi = scan
    x = da.from_array(data, chunks=chunks)
    found = average(
        x, "rectangular", shape=n, boundary=boundary, roi=roi, sig_dims=data.ndim - nav_dims
    )
    wanted = expected(data, nav_dims, np.ones((n,) * nav_dims), boundary)
    inside = np.ones(data.shape[:nav_dims], bool) if roi is None else roi
    np.testing.assert_allclose(found[inside], wanted[inside], rtol=1e-6)
    assert np.isnan(found[~inside]).all()


@settings(deadline=None, max_examples=examples(40, 6), suppress_health_check=list(HealthCheck))
@given(scan=scans(dtypes=("float32", "uint16")), std=st.floats(0.3, 3))
def test_the_last_bit_does_not_depend_on_chunks(scan, std):
    data, nav_dims, chunks, roi = scan
    data = data / np.array(7, data.dtype) if data.dtype.kind == "f" else data
    cut, whole = (
        average(da.from_array(data, chunks=c), "gaussian", std=std, shape=5, roi=roi,
                sig_dims=data.ndim - nav_dims)
        for c in (chunks, -1)
    )  # fmt: skip
    np.testing.assert_array_equal(cut, whole)


@pytest.mark.parametrize("mode", ["nearest", "reflect", "periodic"])
def test_it_is_a_correlation_of_scipy(mode):
    weights = np.random.default_rng(1).random((3, 5))
    found = average(da.from_array(DATA, chunks=(2, 4, 4, 3)), weights, boundary=mode)
    plain = ndimage.correlate(
        DATA.astype("f8"), weights[:, :, None, None], mode={"periodic": "wrap"}.get(mode, mode)
    )
    np.testing.assert_allclose(found, plain / weights.sum(), rtol=1e-6)


@pytest.mark.parametrize(
    ("window", "options", "weights"),
    [
        ("circular", {}, [[0, 1, 0], [1, 1, 1], [0, 1, 0]]),
        ("circular", {"shape": (1, 3)}, [[1, 1, 1]]),
        ("rectangular", {"shape": 3}, np.ones((3, 3))),
        ("gaussian", {"std": 1.5, "shape": (5, 3)}, np.outer(
            signal.windows.gaussian(5, 1.5), signal.windows.gaussian(3, 1.5))),
        (("kaiser", 2.0), {"shape": 5}, np.outer(*[signal.windows.kaiser(5, 2.0)] * 2)),
        ([[0, 0, 1]], {}, [[0, 0, 1]]),
    ],
)  # fmt: skip
def test_windows(window, options, weights):
    found = average(da.from_array(DATA, chunks=(2, 4, 4, 3)), window, **options)
    np.testing.assert_allclose(found, expected(DATA, 2, np.array(weights, "f8")), rtol=1e-6)


def test_a_circle_of_five():
    """As kikuchipy's circular window: up to half the width of the longest axis."""
    weights = np.array(
        [[0, 0, 1, 0, 0], [0, 1, 1, 1, 0], [1, 1, 1, 1, 1], [0, 1, 1, 1, 0], [0, 0, 1, 0, 0]], "f8"
    )
    found = average(da.from_array(DATA, chunks=(3, 3, 4, 3)), "circular", shape=5)
    np.testing.assert_allclose(found, expected(DATA, 2, weights), rtol=1e-6)


def test_a_weighted_sum_is_a_derivative():
    difference = [[0, 0, 0], [-1, 0, 1], [0, 0, 0]]
    x = da.from_array(DATA.astype("i4"), chunks=(2, 4, 4, 3))
    found = average(x, difference, normalize=False, boundary="nearest", dtype="f8")
    wide = np.pad(DATA.astype("f8"), [(0, 0), (1, 1), (0, 0), (0, 0)], mode="edge")
    np.testing.assert_array_equal(found, wide[:, 2:] - wide[:, :-2])


def test_equal_frames_stay_as_they_are():
    x = da.full((4, 5, 3, 3), 60001, dtype="uint16", chunks=(2, 2, 3, 3))
    np.testing.assert_array_equal(average(x, "rectangular", shape=5), 60001)


@pytest.mark.parametrize("dtype", ["c8", "c16", "f2", ">f4", "i8"])
def test_dtypes(dtype):
    data = DATA.astype(dtype)
    if data.dtype.kind == "c":
        data = data + np.array(1j, dtype) * data[::-1]
    found = average(da.from_array(data, chunks=(2, 4, 4, 3)), "rectangular", dtype="f8")
    assert found.dtype == (np.complex128 if data.dtype.kind == "c" else np.float64)
    np.testing.assert_allclose(found, expected(data, 2, np.ones((3, 3))), rtol=1e-12)


def test_a_broken_frame_spoils_its_neighbors_only():
    data = DATA.astype("f4")
    data[2, 2] = np.nan
    found = average(da.from_array(data, chunks=(2, 4, 4, 3)), "circular")
    spoiled = np.zeros(SHAPE[:2], bool)
    spoiled[[2, 2, 2, 1, 3], [2, 1, 3, 2, 2]] = True
    np.testing.assert_array_equal(np.isnan(found).all(axis=(2, 3)), spoiled)
    np.testing.assert_array_equal(np.isnan(found).any(axis=(2, 3)), spoiled)


def test_without_neighbors_there_is_nothing():
    """The weight of the middle is 0, and neighbors must be in the region."""

    class Inside(NeighborAverageUDF):
        neighbors_outside_roi = False

    roi = np.zeros(SHAPE[:2], bool)
    roi[0, 0] = roi[3, 3:5] = True
    udf = Inside([[1, 0, 1]])
    found = ud.run_udf(da.from_array(DATA, chunks=(2, 4, 4, 3)), udf, roi=roi)[
        "intensity"
    ].compute()
    assert np.isnan(found[0, 0]).all()
    np.testing.assert_array_equal(found[3, 3], DATA[3, 4])
    np.testing.assert_array_equal(found[3, 4], DATA[3, 3])


def test_a_single_frame_has_no_neighbors():
    frame = DATA[0, 0]
    np.testing.assert_array_equal(average(da.from_array(frame, chunks=(4, 3))), frame)


def test_axes_and_unit():
    axes = [ud.Axis(name="y"), ud.Axis(name="x", unit="nm", scale=2.0),
            ud.Axis(name="ky", unit="mrad", scale=0.5), ud.Axis(name="kx")]  # fmt: skip
    res = ud.run_udf(da.from_array(DATA), NeighborAverageUDF(), axes=axes, unit="counts")
    assert res.axes["intensity"] == tuple(axes)
    assert res.units["intensity"] == "counts"
    other = ud.run_udf(da.from_array(DATA), NeighborAverageUDF(normalize=False), unit="counts")
    assert other.units["intensity"] is None


@pytest.mark.parametrize(
    ("args", "options"),
    [
        (("circular",), {"shape": 4}),
        (("circular",), {"shape": (3, 2)}),
        (("circular",), {"shape": ()}),
        (("circular",), {"shape": 3.0}),
        (("gaussian",), {}),
        (("gaussian",), {"std": 0}),
        (("gaussian",), {"std": True}),
        (("gaussian",), {"std": 0.01}),
        (("hann",), {}),
        (("circular",), {"shape": True}),
        (("circular",), {"shape": (3, True)}),
        (("circular",), {"std": 1}),
        (("round",), {}),
        (((),), {}),
        (([[1, 1]],), {}),
        (([[1]],), {"shape": 1}),
        (([[1, -1, 1]],), {}),
        (([[0, 0, 0]],), {}),
        (([[np.nan]],), {}),
        ((3,), {}),
        ((None,), {}),
        (({"a": 1},), {}),
        (([[1j]],), {}),
        (("circular",), {"boundary": "wrap"}),
        (("circular",), {"normalize": 1}),
        (("circular",), {"dtype": "uint16"}),
        (("circular",), {"dtype": "nonsense"}),
    ],
)
def test_mistakes(args, options):
    with pytest.raises((ud.ArgumentValueError, ud.ArgumentTypeError)):
        NeighborAverageUDF(*args, **options)


@pytest.mark.parametrize(
    ("udf", "data"),
    [
        (NeighborAverageUDF(shape=(3, 3, 3)), DATA),
        (NeighborAverageUDF(), DATA.astype("m8[s]")),
    ],
)
def test_mistakes_in_the_plan(udf, data):
    with pytest.raises((ud.ArgumentValueError, ud.ArgumentTypeError)):
        ud.run_udf(da.from_array(data), udf)


def test_the_size_of_a_window_is_limited():
    with pytest.raises(ud.ArgumentValueError, match="at most 1001 frames"):
        NeighborAverageUDF(shape=10**9 + 1)


def test_weights_for_another_number_of_axes():
    scan = da.zeros((3, 4, 2, 2), chunks=2)
    with pytest.raises(ud.ArgumentValueError, match=r"shape \(3,\) for 1 navigation axes"):
        ud.run_udf(scan, NeighborAverageUDF([1, 2, 1]))
