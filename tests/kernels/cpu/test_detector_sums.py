"""Sums over a detector, against plain NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from every_dtype import FOREIGN, KNOWN, summable, total_dtype
from suites import examples
from udfdask import SumOverflowError
from udfdask.kernels.cpu.detector_sums import GROUP, LONG, detector_groups, sum_detector

DTYPES = KNOWN + FOREIGN


def found(tile, mask):
    return sum_detector(tile, mask, lambda step: detector_groups(mask, step))


@st.composite
def masks(draw):
    shape = draw(st.tuples(st.integers(1, 9), st.integers(1, 3 * GROUP)))
    share = draw(st.sampled_from([0, 0.05, 0.5, 0.95, 1]))
    return np.random.default_rng(draw(st.integers(0, 99))).random(shape) < share


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=examples(30))
@given(masks(), st.integers(0, 5), st.booleans())
def test_every_dtype(dtype, mask, n, part):
    """The memory of a tile that is part of a frame ends with its last pixel."""
    data = summable(dtype, (n, mask.shape[0] + 2, mask.shape[1] + 3))
    tile = data[:, 2:, 3:] if part else np.ascontiguousarray(data[:, 2:, 3:])
    sums = found(tile, mask)
    assert sums.dtype == total_dtype(dtype).newbyteorder("=")
    wanted = tile[:, mask].sum(axis=1, dtype=sums.dtype)
    if sums.dtype.kind in "iu":
        np.testing.assert_array_equal(sums, wanted)
    else:
        np.testing.assert_allclose(sums, wanted, rtol=1e-12, atol=1e-9)


@settings(max_examples=examples(30))
@given(
    st.integers(1, 4),
    st.sampled_from([GROUP, LONG - 1, LONG, LONG + 1, 2 * LONG + GROUP + 5]),
    st.integers(0, 2),
    st.lists(st.integers(0, 8 * LONG), max_size=6),
)
def test_long_runs_of_pixels(height, width, gap, excluded):
    """The rows are apart, or the last row of a frame ends anywhere in a group."""
    mask = np.ones((height, width), bool)
    mask.flat[[place % mask.size for place in excluded]] = False
    groups = detector_groups(mask, width + gap)
    assert np.isin(np.diff(groups.runs), GROUP * np.arange(LONG // GROUP, mask.size)).all()
    assert groups.mask.sum() + np.diff(groups.runs).sum() == mask.sum()
    for dtype in ("u1", ">i2", "i4", "f4", ">f8"):
        tile = summable(dtype, (3, height, width + gap))[:, :, gap:]
        np.testing.assert_allclose(found(tile, mask), tile[:, mask].sum(axis=1, dtype="f8"), 1e-12)


@pytest.mark.parametrize("dtype", ["f2", "f4", ">f8", "c8", "g"])
def test_pixels_outside_the_detector_are_not_read(dtype):
    mask = np.zeros((5, 40), bool)
    mask[1:4, 3:30] = True
    tile = np.where(mask, 1.0, np.nan).astype(dtype)[np.newaxis].repeat(3, axis=0)
    tile[1, 0, 0] = np.inf
    tile[2, 2, 5] = np.nan
    np.testing.assert_array_equal(found(tile, mask), [81, 81, np.nan])


@pytest.mark.parametrize("width", [4, 40])
@pytest.mark.parametrize("dtype", ["i8", "u8", ">i8"])
def test_sums_that_do_not_fit_64_bits(dtype, width):
    data = np.full((2, 2, width), np.iinfo(dtype).max).astype(dtype)
    with pytest.raises(SumOverflowError):
        found(data, np.ones((2, width), bool))
    assert (found(data, np.arange(2 * width).reshape(2, width) == 5) == np.iinfo(dtype).max).all()


def test_rows_that_share_memory():
    mask = np.random.default_rng(0).random((6, 50)) < 0.5
    data = np.arange(3 * 80, dtype="u2").reshape(3, 80)
    windows = np.lib.stride_tricks.sliding_window_view(data, 50, axis=1)[:, :6]
    for tile in (windows, np.broadcast_to(data[:, :1, np.newaxis], (3, 6, 50)), windows[:, ::-1]):
        np.testing.assert_array_equal(found(tile, mask), tile[:, mask].sum(axis=1))


def test_more_groups_than_fit_a_narrow_sum():
    """65536 values of 16 bits fit 32 bits."""
    tile = np.full((1, 1 << 8, (1 << 8) * GROUP + GROUP), 0xFFFF, np.uint16)
    assert found(tile, np.ones(tile.shape[1:], bool))[0] == tile.size * 0xFFFF
