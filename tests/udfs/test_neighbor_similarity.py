"""NeighborSimilarityUDF against products with shifted copies of the whole scan."""

import dask.array as da
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import udfdask as ud
from plain_neighbors import BOUNDARIES, neighbors, scans
from suites import examples
from udfdask.udfs import NeighborSimilarityUDF

pytestmark = pytest.mark.filterwarnings("ignore:.*task:udfdask.UDFWarning")

SHAPE = (5, 6, 4, 3)
DATA = np.random.default_rng(0).integers(0, 4000, SHAPE).astype("uint16")
CHUNKS = (2, 4, 4, 3)
CROSS = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]])


def expected(data, nav_dims, window, boundary="mask", zero_mean=True, normalize=True, mask=None):
    """The formula, frame by frame, in float64."""
    nav = data.shape[:nav_dims]
    rows = data.reshape((*nav, -1)).astype("f8")
    rows = rows if mask is None else rows[..., mask.ravel()]
    if zero_mean and rows.shape[-1]:
        constant = (rows == rows[..., :1]).all(axis=-1)
        rows = np.where(constant[..., None], 0, rows - rows.mean(axis=-1, keepdims=True))
    if normalize:
        norm = np.sqrt((rows**2).sum(axis=-1, keepdims=True))
        rows = np.divide(rows, norm, out=np.zeros_like(rows), where=norm != 0)
    similarity = np.full((*nav, *window.shape), np.nan)
    middle = tuple(n // 2 for n in window.shape)
    total, count = np.zeros(nav), np.zeros(nav)
    for index, frames, exists in neighbors(rows, nav_dims, window.shape, boundary):
        if window[index]:
            products = (rows * frames).sum(axis=-1)
            similarity[(..., *index)] = np.where(exists, products, np.nan)
            if index != middle:
                total += products * exists
                count += exists
    with np.errstate(invalid="ignore"):
        return similarity, total / count


def similarity(x, *args, roi=None, sig_dims=2, **options):
    udf = NeighborSimilarityUDF(*args, dtype="f8", **options)
    res = ud.run_udf(x, udf, roi=roi, sig_dims=sig_dims).compute(scheduler="synchronous")
    return res["similarity"], res["mean"]


def check(found, wanted, where=..., scale=1.0):
    for array, plain in zip(found, wanted, strict=True):
        np.testing.assert_allclose(array[where], plain[where], rtol=1e-10, atol=1e-10 * scale)


@settings(deadline=None, max_examples=examples(60), suppress_health_check=list(HealthCheck))
@given(
    scan=scans(),
    boundary=st.sampled_from(BOUNDARIES),
    n=st.sampled_from([1, 3, 5]),
    zero_mean=st.booleans(),
    normalize=st.booleans(),
)
def test_any_scan(scan, boundary, n, zero_mean, normalize):
    data, nav_dims, chunks, roi = scan
    options = {"boundary": boundary, "zero_mean": zero_mean, "normalize": normalize}
    x = da.from_array(data, chunks=chunks)
    found = similarity(x, "rectangular", shape=n, roi=roi, sig_dims=data.ndim - nav_dims, **options)
    wanted = expected(data, nav_dims, np.ones((n,) * nav_dims), **options)
    check(found, wanted, ... if roi is None else roi, scale=1 if normalize else 1e5)


@settings(deadline=None, max_examples=examples(40, 6), suppress_health_check=list(HealthCheck))
@given(scan=scans(dtypes=("float32", "uint16")), n=st.sampled_from([3, 5]))
def test_the_last_bit_does_not_depend_on_chunks(scan, n):
    data, nav_dims, chunks, roi = scan
    data = data / np.array(7, data.dtype) if data.dtype.kind == "f" else data
    cut, whole = (
        similarity(da.from_array(data, chunks=c), shape=n, roi=roi, sig_dims=data.ndim - nav_dims)
        for c in (chunks, -1)
    )
    for part, all_at_once in zip(cut, whole, strict=True):
        np.testing.assert_array_equal(part, all_at_once)


@pytest.mark.parametrize("width", [1, 2047, 2048, 5000])
def test_long_frames(width):
    """Frames are added up in blocks."""
    data = np.random.default_rng(1).random((3, 4, 1, width)).astype("f4")
    mask = np.random.default_rng(2).random((1, width)) > 0.3
    mask[0, 0] = True
    for chosen in (None, mask):
        found = similarity(da.from_array(data, chunks=(2, 3, 1, -1)), mask=chosen)
        check(found, expected(data, 2, CROSS, mask=chosen))


@pytest.mark.parametrize(
    "window",
    [[[0, 0, 1]], [[1], [0], [0]], [[1, 0, 1, 1, 0]], np.eye(3), [[0]] * 2 + [[1]] * 3, [[1]]],
)
def test_windows_without_symmetry(window):
    """A pair of frames is multiplied once, and not needed by both of them."""
    roi = np.random.default_rng(3).random(SHAPE[:2]) > 0.3
    for region in (None, roi):
        found = similarity(da.from_array(DATA, chunks=CHUNKS), window, roi=region)
        check(found, expected(DATA, 2, np.array(window)), ... if region is None else region)


def test_a_mask_hides_broken_pixels():
    data = DATA.astype("f4")
    data[..., 1, 1] = np.nan
    mask = np.ones(SHAPE[2:], bool)
    mask[1, 1] = False
    found = similarity(da.from_array(data, chunks=CHUNKS), mask=mask)
    check(found, expected(data, 2, CROSS, mask=mask))
    assert np.isnan(similarity(da.from_array(data, chunks=CHUNKS))[1]).all()


@pytest.mark.parametrize(("value", "zero_mean"), [(0, False), (0, True), (0.1, True), (1e6, True)])
def test_frames_without_contrast(value, zero_mean):
    data = np.random.default_rng(4).random(SHAPE).astype("f4")
    data[2, 2] = value
    both, mean = similarity(da.from_array(data, chunks=CHUNKS), zero_mean=zero_mean)
    assert mean[2, 2] == 0
    np.testing.assert_array_equal(both[2, 2][CROSS == 1], 0)
    assert both[2, 1, 1, 2] == 0


def test_a_frame_with_nan_spoils_its_products_only():
    data = DATA.astype("f4")
    data[2, 2, 0, 0] = np.nan
    both, mean = similarity(da.from_array(data, chunks=CHUNKS))
    assert np.isnan(mean).sum() == 5
    assert np.isnan(both[2, 1, 1, 2])
    assert np.isfinite(both[2, 1, 1, :2]).all()


def test_frames_that_are_equal_up_to_a_factor():
    data = np.random.default_rng(5).random((4, 3)).astype("f4") * np.arange(
        1, 31, dtype="f4"
    ).reshape(5, 6, 1, 1)
    _, mean = similarity(da.from_array(data, chunks=CHUNKS))
    np.testing.assert_allclose(mean, 1, rtol=1e-6)
    assert mean.max() <= 1


def test_a_single_frame_has_no_neighbors():
    both, mean = similarity(da.from_array(DATA[0, 0], chunks=(4, 3)))
    assert both == pytest.approx(1)
    assert np.isnan(mean)


def test_axes_units_and_plots():
    axes = [ud.Axis(name="y", unit="nm", scale=2.0), ud.Axis(name="x"),
            ud.Axis(name="ky", unit="mrad", scale=0.5), ud.Axis(name="kx")]  # fmt: skip
    res = ud.run_udf(da.from_array(DATA), NeighborSimilarityUDF(shape=(3, 5)), axes=axes, unit="e")
    _, _, dy, dx = res.axes["similarity"]
    assert (dy.name, dy.unit, dx.name) == ("y_offset", "nm", "x_offset")
    np.testing.assert_array_equal(dy.positions(3), [-2, 0, 2])
    np.testing.assert_array_equal(dx.positions(5), [-2, -1, 0, 1, 2])
    assert res.units["mean"] == ""
    assert NeighborSimilarityUDF.default_plots == ("mean",)


@pytest.mark.parametrize(
    "options",
    [
        {"shape": 2},
        {"window": "round"},
        {"zero_mean": 1},
        {"normalize": None},
        {"boundary": "wrap"},
        {"dtype": "u2"},
        {"dtype": "nonsense"},
        {"mask": np.ones((4, 3))},
        {"mask": np.full((4, 3), 2)},
        {"mask": da.ones((4, 3), dtype=bool)},
        {"mask": np.zeros((4, 3), bool)},
        {"window": "hann"},
    ],
)
def test_mistakes(options):
    with pytest.raises((ud.ArgumentValueError, ud.ArgumentTypeError)):
        NeighborSimilarityUDF(**options)


@pytest.mark.parametrize(
    ("options", "data"),
    [
        ({"shape": (3,)}, DATA),
        ({"mask": np.ones(3, bool)}, DATA),
        ({}, DATA.astype("c8")),
    ],
)
def test_mistakes_in_the_plan(options, data):
    with pytest.raises((ud.ArgumentValueError, ud.ArgumentTypeError)):
        ud.run_udf(da.from_array(data), NeighborSimilarityUDF(**options))


def test_a_frame_alone_is_similar_to_itself_only():
    frame = da.from_array(np.arange(12.0).reshape(3, 4), chunks=-1)
    result = ud.run_udf(frame, NeighborSimilarityUDF(), sig_dims=2).compute()
    assert result["similarity"] == 1
    assert np.isnan(result["mean"])
