"""Sums over the pixels of each frame of a tile."""

import math

import numpy as np
import pytest

from every_dtype import FOREIGN, KNOWN, sample, total_dtype
from udfdask.errors import SumOverflowError
from udfdask.kernels.cpu.pixel_sums import BLOCK, add_pixels


def check(tile, dtype):
    total = np.ones(len(tile), dtype=total_dtype(dtype))
    want = total + tile.sum(axis=tuple(range(1, tile.ndim)), dtype=total.dtype)
    if tile.dtype.kind in "iu" and tile.dtype.itemsize == 8:
        axes = tuple(range(1, tile.ndim))
        if (total.astype(object) + tile.astype(object).sum(axis=axes) != want).any():
            with pytest.raises(SumOverflowError, match="does not fit"):
                add_pixels(tile, total)
            return
    add_pixels(tile, total)
    if tile.dtype.kind in "biu":
        np.testing.assert_array_equal(total, want)
    else:
        np.testing.assert_allclose(total, want, rtol=1e-14, atol=1e-9)


@pytest.mark.full
@pytest.mark.parametrize("dtype", KNOWN + FOREIGN)
@pytest.mark.parametrize("n", [1, 5])
def test_every_dtype(dtype, n):
    tile = sample(dtype, (n, 3, 37))
    check(tile, dtype)
    check(tile[:, 1:], dtype)
    check(tile[::2, :, ::-1], dtype)


@pytest.mark.parametrize("dtype", ["u2", "i2", "f4", "f8", "c8"])
@pytest.mark.parametrize(
    "width", [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK, 6 * BLOCK + 7, 100 * BLOCK]
)
def test_blocks(dtype, width):
    check(sample(dtype, (2, width)), dtype)


@pytest.mark.parametrize("shape", [(0, 3, 4), (3, 0, 4)])
def test_nothing(shape):
    total = np.ones(shape[0])
    add_pixels(np.zeros(shape), total)
    assert (total == 1).all()


def test_nan_and_infinity_stay_where_they_are():
    tile = np.ones((5, 5000), dtype="f4")
    tile[1, 4000], tile[2, 6], tile[3, 7], tile[3, 4999] = np.nan, np.inf, np.inf, -np.inf
    total = np.zeros(5)
    add_pixels(tile, total)
    with np.errstate(invalid="ignore"):
        want = tile.sum(axis=1)
    np.testing.assert_array_equal(total, want)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3))
def test_no_less_accurate_than_numpy(seed):
    rng = np.random.default_rng(seed)
    tile = rng.lognormal(sigma=3, size=(20, 300_001))
    true = np.array([math.fsum(row) for row in tile.tolist()])
    total = np.zeros(20)
    add_pixels(tile, total)
    ours, numpys = (np.abs(s / true - 1) for s in (total, tile.sum(axis=1)))
    assert np.sqrt((ours**2).mean()) <= 1.5 * np.sqrt((numpys**2).mean())
    assert ours.max() < 1e-15
