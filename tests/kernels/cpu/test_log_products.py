"""Sums of logarithms, as logarithms of products."""

import numpy as np
import pytest

from every_dtype import FOREIGN, KNOWN, sample
from udfdask.kernels.cpu.log_sums import BLOCK, log_of, multiply_heights, normalize_products

REAL = [d for d in KNOWN + FOREIGN if np.dtype(d).kind != "c"]


def products(*tiles):
    shape = tiles[0].shape[1:]
    mantissa, exponent = np.ones(shape), np.zeros(shape, dtype="i8")
    pending = 0
    for tile in tiles:
        pending = multiply_heights(tile, mantissa, exponent, pending)
    normalize_products(mantissa, exponent)
    return mantissa, exponent


def plain(data):
    x = data.astype("f8")
    lowest = x.min(axis=tuple(range(1, x.ndim)), keepdims=True)
    return np.log(x - lowest + 1).sum(axis=0)


@pytest.mark.full
@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("n", [1, 3, 4, 9, 65, 130])
def test_every_dtype(dtype, n):
    data = sample(dtype, (n, 3, 17))
    mantissa, exponent = products(data)
    assert ((mantissa >= 1) & (mantissa < 2)).all()
    np.testing.assert_allclose(log_of(mantissa, exponent), plain(data), rtol=1e-13)
    np.testing.assert_allclose(log_of(*products(data[:2], data[2:])), plain(data), rtol=1e-13)
    np.testing.assert_allclose(log_of(*products(*data[:, np.newaxis])), plain(data), rtol=1e-13)
    part = data[:, 1:]
    np.testing.assert_allclose(log_of(*products(part)), plain(part), rtol=1e-13)


@pytest.mark.parametrize("width", [1, BLOCK, BLOCK + 1, 3 * BLOCK + 5])
def test_blocks(width):
    data = sample("u2", (9, width))
    np.testing.assert_allclose(log_of(*products(data)), plain(data), rtol=1e-13)


@pytest.mark.full
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_factors_near_the_end_of_the_range(dtype):
    data = np.zeros((9, 4), dtype=dtype)
    data[:, 1:] = np.finfo(dtype).max / 4
    data[::2, 2] *= -1
    with np.errstate(over="ignore"):
        want = plain(data)
    np.testing.assert_allclose(log_of(*products(data)), want, rtol=1e-13)


def test_the_lowest_pixel_gives_exactly_nothing():
    data = sample("f4", (50, 12))
    data[:, 3] = -1e30
    assert log_of(*products(data))[3] == 0


def test_nan_and_infinity():
    data = np.ones((12, 4), dtype="f4")
    data[5, 1] = np.inf
    np.testing.assert_array_equal(log_of(*products(data)), [0, np.inf, 0, 0])
    data[7, 2] = np.nan  # there is no smallest value then
    assert np.isnan(log_of(*products(data))).all()


@pytest.mark.parametrize("shape", [(0, 3, 4), (3, 0, 4)])
def test_nothing(shape):
    mantissa, exponent = np.ones(shape[1:]), np.zeros(shape[1:], dtype="i8")
    multiply_heights(np.zeros(shape), mantissa, exponent)
    assert not log_of(mantissa, exponent).any()
