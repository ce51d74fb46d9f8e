"""Sums of squared deviations, tile by tile and merged, against two passes of NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from every_dtype import FOREIGN, KNOWN, sample
from udfdask.numeric.moments import BLOCK, SQUARE_BLOCK, add_moments, merge_moments


def moments(*tiles):
    """Sum and sum of squared deviations of tiles, one after another."""
    paired = tiles[0].dtype.kind == "c"
    total = np.zeros(tiles[0].shape[1:], dtype="c16" if paired else "f8")
    varsum = np.zeros(total.shape)
    before = 0
    for tile in tiles:
        add_moments(tile, before, total, varsum)
        before += len(tile)
    return before, total, varsum


def true_moments(data):
    wide = np.clongdouble if data.dtype.kind == "c" else np.longdouble
    x = data.astype(wide)
    deviation = x - x.mean(axis=0)
    squares = deviation.real**2 + (deviation.imag**2 if data.dtype.kind == "c" else 0)
    return x.sum(axis=0), squares.sum(axis=0)


def check(found, data, rtol=1e-13):
    n, total, varsum = found
    true_total, true_varsum = true_moments(data)
    assert n == len(data)
    scale = float(np.abs(data.astype(total.dtype)).max(initial=0)) * max(n, 1)
    np.testing.assert_allclose(total, true_total.astype(total.dtype), rtol=rtol, atol=scale * 1e-15)
    np.testing.assert_allclose(varsum, true_varsum.astype("f8"), rtol=rtol, atol=0)


@pytest.mark.parametrize("dtype", KNOWN + FOREIGN)
@pytest.mark.parametrize("n", [2, 8, 17])
def test_every_dtype(dtype, n):
    data = sample(dtype, (n, 3, 37))
    check(moments(data), data)
    check(moments(data[:1], data[1:]), data)
    check(moments(data[: n // 2, 1:], data[n // 2 :, 1:]), data[:, 1:])
    check(moments(data[:, :, ::-1]), data[:, :, ::-1])


@pytest.mark.parametrize("dtype", ["u2", "f4"])
@pytest.mark.parametrize("width", [1, BLOCK, BLOCK + 1, SQUARE_BLOCK, SQUARE_BLOCK + 1, 9000])
def test_blocks(dtype, width):
    data = sample(dtype, (9, width))
    check(moments(data), data)


@pytest.mark.parametrize("dtype", ["u1", "u2", "i1", "i2"])
@pytest.mark.parametrize("n", [32768, 32769, 100_000])
def test_more_frames_than_squares_can_be_added_up_of(dtype, n):
    limits = np.iinfo(dtype)
    data = np.full((n, 3), limits.max, dtype=dtype)
    data[::2, 1] = limits.min
    data[5, 2] = limits.max - 1
    check(moments(data), data)
    assert moments(data)[2][0] == 0


@pytest.mark.parametrize("dtype", ["u1", "u2", "i4", "f4", "f8", "c8"])
def test_pixels_that_never_change_deviate_by_nothing(dtype):
    tile = np.full((11, 20), 77, dtype=dtype)
    assert not moments(tile, tile[:3], tile)[2].any()


@pytest.mark.parametrize("offset", [1e6, -1e6, 3e4])
def test_a_large_offset_costs_no_precision(offset):
    """A sum of squares less the square of a sum would have no digit left."""
    noise = np.random.default_rng(1).normal(size=(640, 50))
    data = (noise + offset).astype("f4")
    check(moments(*np.split(data, 40)), data, rtol=1e-11)
    data = noise + 1e3 * offset
    check(moments(*np.split(data, 40)), data, rtol=1e-6)


@settings(deadline=None)
@given(st.data())
def test_any_order_of_merging(data):
    dtype = data.draw(st.sampled_from(["u2", "i4", "f4", "c8"]))
    values = sample(dtype, (data.draw(st.integers(1, 30)), 5), data.draw(st.integers(0, 99)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(values)), max_size=4)))
    parts = [moments(part) for part in np.split(values, cuts)]
    while len(parts) > 1:
        k = data.draw(st.integers(0, len(parts) - 2))
        (n, total, varsum), (m, more, more_varsum) = parts[k : k + 2]
        merge_moments(n, total, varsum, m, more, more_varsum)
        parts[k : k + 2] = [(n + m, total, varsum)]
    true_total, true_varsum = true_moments(values)
    found = parts[0]
    scale = float(np.abs(values.astype("c16")).max()) or 1.0
    np.testing.assert_allclose(found[1], true_total.astype(found[1].dtype), atol=1e-13 * scale)
    np.testing.assert_allclose(
        found[2], true_varsum.astype("f8"), rtol=1e-12, atol=1e-28 * scale**2
    )


def test_nan_and_infinity_spoil_their_pixel_alone():
    tile = sample("f4", (9, 40))
    tile[3, 5], tile[8, 6] = np.nan, np.inf
    _, total, varsum = moments(tile, tile)
    assert np.flatnonzero(~np.isfinite(total)).tolist() == [5, 6]
    assert np.flatnonzero(~np.isfinite(varsum)).tolist() == [5, 6]


@pytest.mark.parametrize("shape", [(0, 3, 4), (3, 0, 4)])
def test_nothing(shape):
    total, varsum = np.ones(shape[1:]), np.ones(shape[1:])
    add_moments(np.zeros(shape), 2, total, varsum)
    merge_moments(2, total, varsum, 0, np.zeros(shape[1:]), np.zeros(shape[1:]))
    assert (total == 1).all()
    assert (varsum == 1).all()
