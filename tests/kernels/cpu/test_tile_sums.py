"""The sums of a tile are those of NumPy, for every dtype, memory layout and number of frames."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites import few_of
from udfdask.udf.tile_sums import TileSums, has_sums

DTYPES = [">u2", "?", "u1", "i1", "u2", "i2", "u4", "i4", "f2", ">f4", "f8", "f4"]


def made(dtype, shape, seed):
    """Random values over the whole range of an integer dtype; moderate ones of a floating dtype."""
    rng, dtype = np.random.default_rng(seed), np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind == "f":
        return rng.normal(100, 5, shape).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype.newbyteorder("="), True).astype(dtype)


def check(tile):
    """Compare all sums of a tile with sums of Python integers or of long doubles."""
    exact = np.longdouble if tile.dtype.kind == "f" else object
    wide = tile.astype(int if tile.dtype.kind == "b" else tile.dtype).astype(exact)
    n, (y, x) = len(tile), np.indices(tile.shape[1:])
    sums = TileSums(tile)
    origin, excess, varsum = sums.moments
    close = {"rtol": 1e-12, "atol": 1e-12 * float(np.abs(wide).max()) * tile.size}
    of_frames = np.stack([(wide * w).sum(axis=(1, 2)) for w in (np.ones_like(y), y, x)], axis=1)
    np.testing.assert_allclose(sums.of_frames, of_frames.astype(float), **close)
    np.testing.assert_allclose(n * origin + excess, wide.sum(axis=0).astype(float), **close)
    if tile.dtype.kind != "f":
        np.testing.assert_array_equal(n * origin + excess, wide.sum(axis=0))
        np.testing.assert_array_equal(sums.of_frames[:, 0], of_frames[:, 0])
    # n * varsum is a whole number for integers
    varsums = (n * (wide * wide).sum(axis=0) - wide.sum(axis=0) ** 2).astype(float) / n
    np.testing.assert_allclose(varsum, varsums, rtol=1e-11, atol=1e-9 if exact is object else 1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(dtype):
    for shape in [(1, 1, 1), (7, 3, 5), (8, 16, 16), (75, 6, 300), (33, 2, 5000), (9, 5000, 1)]:
        check(made(dtype, shape, seed=shape[0]))


def test_extreme_values_do_not_overflow():
    for dtype in few_of(["u2", "i1", "u1", "i2", "u4", "i4"]):
        limits = np.iinfo(dtype)
        for value in (limits.max, limits.min):
            for shape in [(17, 32, 128), (8, 1, 4096), (8, 3, 9000)]:
                check(np.full(shape, value, dtype))


@given(
    dtype=st.sampled_from([">u2", "f4"]),  # each dtype takes seconds to compile
    shape=st.tuples(st.integers(1, 70), st.integers(1, 9), st.integers(1, 40)),
    first=st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)),
    steps=st.tuples(st.sampled_from([1, 2, -1]), st.sampled_from([1, 2, -1]), st.just(1)),
    order=st.permutations([0, 1, 2]),
)
def test_every_memory_layout(dtype, shape, first, steps, order):
    whole = made(dtype, [2 * n + 3 for n in shape], seed=0).transpose(order)
    tile = whole[tuple(slice(f, None, s) for f, s in zip(first, steps, strict=True))]
    if tile.size:
        check(tile)


def test_nan_and_infinity_stay_in_their_frame_and_pixel():
    tile = np.ones((20, 4, 6), "f4")
    tile[3, 1, 2], tile[17, 2, 5] = np.nan, np.inf
    sums = TileSums(tile)
    finite = np.isfinite(sums.of_frames).all(axis=1)
    assert list(np.flatnonzero(~finite)) == [3, 17]
    total = 20 * sums.moments.origin + sums.moments.excess
    assert np.isnan(total[1, 2])
    assert total[2, 5] == np.inf
    assert np.isfinite(total).sum() == 22
    np.testing.assert_array_equal(sums.moments.varsum[np.isfinite(total)], 0)


def test_small_variances_of_large_values():
    """Deviations are taken from a frame, so that a large offset costs no digits."""
    noise = np.random.default_rng(0).normal(0, 1e-3, (200, 4, 4))
    tile = noise + 1e9
    expected = (tile - 1e9).astype(np.longdouble)
    expected = ((expected - expected.mean(axis=0)) ** 2).sum(axis=0).astype(float)
    np.testing.assert_allclose(TileSums(tile).moments.varsum, expected, rtol=1e-9)
    constant = np.full((50, 2, 2), 0.1)
    np.testing.assert_array_equal(TileSums(constant).moments.varsum, 0)


def test_an_empty_tile():
    for shape in [(0, 3, 4), (5, 0, 4)]:
        sums = TileSums(np.ones(shape, "u2"))
        assert sums.count == shape[0]
        assert sums.of_frames.shape == (shape[0], 3)
        assert sums.moments.varsum.shape == shape[1:]
        assert not sums.of_frames.any()


def test_what_is_computed_once_is_kept():
    tile = made("u2", (9, 4, 4), seed=1)
    sums = TileSums(tile)
    assert sums.moments is sums.moments
    assert sums.of_frames is sums.of_frames


def test_dtypes_that_have_sums():
    for dtype in DTYPES:
        assert has_sums(np.dtype(dtype), 1 << 21)
    for dtype in ["i8", "u8", "g", "c8", "c16", "O", "M8[s]"]:
        assert not has_sums(np.dtype(dtype), 4)
    assert not has_sums(np.dtype("i4"), (1 << 21) + 1)
    assert has_sums(np.dtype("u2"), 1 << 24)
