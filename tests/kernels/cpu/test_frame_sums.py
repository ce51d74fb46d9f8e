"""Sums over the frames of a tile."""

import math

import numpy as np
import pytest

from every_dtype import FOREIGN, KNOWN, sample, total_dtype
from udfdask.errors import SumOverflowError
from udfdask.kernels.cpu.pixel_sums import COLUMNS as BLOCK
from udfdask.kernels.cpu.pixel_sums import add_frames


def check(tile, dtype):
    total = np.ones(tile.shape[1:], dtype=total_dtype(dtype))
    want = total + tile.sum(axis=0, dtype=total.dtype)
    if tile.dtype.kind in "iu" and tile.dtype.itemsize == 8:
        exact = total.astype(object) + tile.astype(object).sum(axis=0)
        if (exact != want).any():
            with pytest.raises(SumOverflowError, match="does not fit"):
                add_frames(tile, total)
            return
    add_frames(tile, total)
    if tile.dtype.kind in "biu":
        np.testing.assert_array_equal(total, want)
    else:
        np.testing.assert_allclose(total, want, rtol=1e-14, atol=1e-10)


@pytest.mark.full
@pytest.mark.parametrize("dtype", KNOWN + FOREIGN)
@pytest.mark.parametrize("n", [1, 7, 8, 9, 16, 21])
def test_every_dtype(dtype, n):
    tile = sample(dtype, (n, 3, 37))
    check(tile, dtype)
    check(tile[:, 1:], dtype)
    check(tile[::2, :, ::-1], dtype)


@pytest.mark.parametrize("width", [1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 5])
def test_blocks(width):
    check(sample("u2", (9, width)), "u2")


@pytest.mark.parametrize(("dtype", "value"), [("u2", 65535), ("i2", -32768), ("u1", 255)])
@pytest.mark.parametrize("n", [65536, 65537, 140000])
def test_more_frames_than_32_bits_can_add_up(dtype, value, n):
    check(np.full((n, 2), value, dtype=dtype), dtype)


@pytest.mark.parametrize("n", [256, 257, 600])
def test_more_bytes_than_16_bits_can_add_up(n):
    check(np.full((n, 2), -128, dtype="i1"), "i1")


@pytest.mark.parametrize("shape", [(0, 3, 4), (3, 0, 4)])
def test_nothing(shape):
    total = np.ones(shape[1:])
    add_frames(np.zeros(shape), total)
    assert (total == 1).all()


def test_nan_and_infinity_stay_where_they_are():
    tile = np.ones((9, 40), dtype="f4")
    tile[3, 5], tile[8, 6], tile[0, 7], tile[1, 7] = np.nan, np.inf, np.inf, -np.inf
    total = np.zeros(40)
    add_frames(tile, total)
    with np.errstate(invalid="ignore"):
        want = tile.sum(axis=0)
    np.testing.assert_array_equal(total, want)


def test_single_precision_is_added_up_in_double():
    tile = np.full((4096, 50), 0.1, dtype="f4")
    total = np.zeros(50)
    add_frames(tile, total)
    want = math.fsum(tile[:, 0].tolist())
    np.testing.assert_allclose(total, want, rtol=1e-15)
