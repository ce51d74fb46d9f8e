"""Weighted sums over groups of pixels, against plain NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from every_dtype import FOREIGN, KNOWN, sample
from suites import examples
from udfdask.base.aligned import CACHE_LINE
from udfdask.kernels.cpu.ring_sums import BLOCK, LONGEST, add_runs, cut_runs, frames_in_memory
from udfdask.kernels.numba_internals.vector_products import LANES, SIDE

REAL = [d for d in KNOWN + FOREIGN if np.dtype(d).kind != "c"]
NUMBERS = [1, SIDE, SIDE + 1, LANES, 2 * LANES + 3]
COLUMNS = 7


def draw(frame, terms, real, seed, number):
    """Pixels (some repeatedly), their groups, the columns of the groups, and weights."""
    rng = np.random.default_rng(seed)
    y, x = rng.integers(0, frame, (number, 2)).T
    groups = rng.integers(0, 5, number)
    columns = rng.integers(0, COLUMNS + 1, (5, terms))  # the last one is ignored
    return y, x, groups, columns, rng.uniform(-1, 1, (number, terms)).astype(real)


def found(tile, y, x, groups, columns, weights):
    frames = frames_in_memory(tile)
    places = y * frames.row_step + x
    runs = cut_runs(places, groups, columns, weights, frames)
    out = np.ones((len(tile), COLUMNS))
    add_runs(frames, runs, out)
    return out - 1


def plain(tile, y, x, groups, columns, weights):
    sums = np.zeros((len(tile), COLUMNS + 1))
    with np.errstate(invalid="ignore"):
        products = tile[:, y, x].astype("f8")[..., np.newaxis] * weights
    for f, row in enumerate(products):
        np.add.at(sums[f], columns[groups], row)
    return sums[:, :-1]


@pytest.mark.parametrize("dtype", REAL)
@settings(max_examples=examples(10))
@given(st.tuples(*[st.integers(1, 70)] * 2), st.sampled_from(NUMBERS), st.integers(0, 99))
def test_every_dtype(dtype, frame, n, seed):
    tile = sample(dtype, (n, frame[0] + 2, frame[1] + 3), seed)[:, 2:, 3:]
    exact = np.dtype(dtype).kind == "b" or np.dtype(dtype).itemsize <= 2
    for terms, real in ((2, "f8"), (9, "f4" if exact else "f8")):
        given = draw(frame, terms, real, seed, 40)
        wanted = plain(tile, *given)
        error = np.abs(found(tile, *given) - wanted).max()
        largest = np.abs(tile.astype("f8")).max() * 40
        assert error <= (1e-12 if real == "f8" else 2e-6) * largest


def test_many_pixels():
    """Several blocks, and groups that are longer than a run."""
    frame, n = (BLOCK // 4, 500), 3
    given = draw(frame, 2, "f8", 0, 3 * LONGEST)
    tile = sample("u2", (n, *frame))
    np.testing.assert_allclose(found(tile, *given), plain(tile, *given), rtol=1e-9)


@pytest.mark.parametrize("dtype", ["u1", ">f8"])
def test_the_address_of_frames_changes_no_bit(dtype):
    """Frames can start anywhere in a cache line."""
    shape, width = (5, BLOCK, CACHE_LINE), CACHE_LINE // np.dtype(dtype).itemsize
    given = draw(shape[1:], 2, "f8", 0, 4000)
    values = sample(dtype, shape)
    memory, shifts, sums = np.zeros(values.size + width, dtype), set(), []
    for first in range(width):
        tile = memory[first : first + values.size].reshape(shape)
        tile[:] = values
        shifts.add(frames_in_memory(tile).shift)
        sums.append(found(tile, *given))
    np.testing.assert_allclose(sums[0], plain(values, *given), rtol=1e-9)
    np.testing.assert_array_equal(sums, sums[:1] * width)
    assert len(shifts) == width


def test_rows_that_share_memory():
    given = draw((20, 5), 2, "f8", 0, 30)
    tile = np.broadcast_to(sample("i2", (3, 1, 5)), (3, 20, 5))
    np.testing.assert_allclose(found(tile, *given), plain(tile, *given), rtol=1e-9)


def test_only_columns_of_a_pixel_get_its_nan():
    y, x, groups, columns, weights = draw((9, 9), 2, "f8", 0, 50)
    for n in NUMBERS:
        tile = np.ones((n, 9, 9))
        tile[n // 2, y[7], x[7]] = np.nan
        wanted = plain(tile, y, x, groups, columns, weights)
        assert np.isnan(wanted[n // 2]).any()
        np.testing.assert_allclose(found(tile, y, x, groups, columns, weights), wanted, rtol=1e-9)


def test_no_pixels():
    given = draw((9, 9), 2, "f8", 0, 0)
    np.testing.assert_array_equal(found(np.ones((3, 9, 9)), *given), 0)
