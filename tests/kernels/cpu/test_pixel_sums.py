"""Sums over the frames of a tile, and over the pixels of each frame."""

import math

import numpy as np
import pytest

from every_dtype import FOREIGN, KNOWN, sample, total_dtype
from udfdask.errors import SumOverflowError
from udfdask.kernels.cpu.pixel_sums import BLOCK, COLUMNS, add_frames, add_pixels
from udfdask.kernels.overflow import is_long

BOTH = pytest.mark.parametrize("add", [add_frames, add_pixels])


def axes_of(add, tile):
    return (0,) if add is add_frames else tuple(range(1, tile.ndim))


def exact_sum(total, tile, axes):
    """In Python's own integers."""
    return total.astype(object) + tile.astype(object).sum(axis=axes)


def check(add, tile, dtype):
    axes = axes_of(add, tile)
    total = np.ones_like(tile.sum(axis=axes), dtype=total_dtype(dtype))
    want = total + tile.sum(axis=axes, dtype=total.dtype)
    if is_long(tile.dtype) and (exact_sum(total, tile, axes) != want).any():
        with pytest.raises(SumOverflowError, match="does not fit"):
            add(tile, total)
        return
    add(tile, total)
    if tile.dtype.kind in "biu":
        np.testing.assert_array_equal(total, want)
    else:
        np.testing.assert_allclose(total, want, rtol=1e-14, atol=1e-9)


@pytest.mark.full
@pytest.mark.parametrize("dtype", KNOWN + FOREIGN)
@pytest.mark.parametrize("n", [1, 5, 7, 8, 9, 16, 21])
@BOTH
def test_every_dtype(add, dtype, n):
    tile = sample(dtype, (n, 3, 37))
    check(add, tile, dtype)
    check(add, tile[:, 1:], dtype)
    check(add, tile[::2, :, ::-1], dtype)


@pytest.mark.parametrize("width", [1, COLUMNS - 1, COLUMNS, COLUMNS + 1, 2 * COLUMNS + 5])
def test_blocks_of_frames(width):
    check(add_frames, sample("u2", (9, width)), "u2")


@pytest.mark.parametrize("dtype", ["u2", "i2", "f4", "f8", "c8"])
@pytest.mark.parametrize(
    "width", [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK, 6 * BLOCK + 7, 100 * BLOCK]
)
def test_blocks_of_pixels(dtype, width):
    check(add_pixels, sample(dtype, (2, width)), dtype)


@pytest.mark.parametrize(("dtype", "value"), [("u2", 65535), ("i2", -32768), ("u1", 255)])
@pytest.mark.parametrize("n", [65536, 65537, 140000])
def test_more_frames_than_32_bits_can_add_up(dtype, value, n):
    check(add_frames, np.full((n, 2), value, dtype=dtype), dtype)


@pytest.mark.parametrize("n", [256, 257, 600])
def test_more_bytes_than_16_bits_can_add_up(n):
    check(add_frames, np.full((n, 2), -128, dtype="i1"), "i1")


@pytest.mark.parametrize("shape", [(0, 3, 4), (3, 0, 4)])
@BOTH
def test_nothing(add, shape):
    tile = np.zeros(shape)
    total = np.ones_like(tile.sum(axis=axes_of(add, tile)))
    add(tile, total)
    assert (total == 1).all()


@BOTH
def test_nan_and_infinity_stay_where_they_are(add):
    tile = np.ones((9, 5000), dtype="f4")
    tile[1, 4000], tile[2, 6], tile[3, 7], tile[3, 4999] = np.nan, np.inf, np.inf, -np.inf
    tile[8, 4999] = np.inf
    (axis,) = axes_of(add, tile)
    total = np.zeros(tile.shape[1 - axis])
    add(tile, total)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(total, tile.sum(axis=axis))


def test_single_precision_is_added_up_in_double():
    total = np.zeros(50)
    add_frames(np.full((4096, 50), 0.1, dtype="f4"), total)
    np.testing.assert_allclose(total, math.fsum([np.float32(0.1)] * 4096), rtol=1e-15)


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
