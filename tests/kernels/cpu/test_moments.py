"""Sums of squared deviations, by tiles and merged, compared with two passes in NumPy."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from every_dtype import sample
from suites import examples
from udfdask.kernels.cpu.variance import BLOCK, SQUARE_BLOCK, add_moments, merge_moments
from udfdask.kernels.moment_arrays import Moments


def nothing(shape, dtype):
    """Return the moments of no frames."""
    wide = "c16" if np.dtype(dtype).kind == "c" else "f8"
    return Moments(np.zeros(shape, wide), np.zeros(shape, wide), np.zeros(shape))


def kept(*tiles):
    """Return the number of frames and the moments of tiles, added one after another."""
    found, before = nothing(tiles[0].shape[1:], tiles[0].dtype), 0
    for tile in tiles:
        add_moments(tile, before, found)
        before += len(tile)
    return before, found


def moments(*tiles):
    """Return the number, sum and squared deviations of tiles, added one after another."""
    return summed(*kept(*tiles))


def summed(n, found):
    """Return the number, sum and squared deviations of moments."""
    return n, found.origin * n + found.excess, found.varsum


def merged(parts, order):
    """Merge the moments of parts in pairs of neighbors; `order` gives the pairs."""
    parts = [(n, Moments(*(a.copy() for a in found))) for n, found in parts]
    for k in order:
        (n, found), (m, more) = parts[k : k + 2]
        merge_moments(n, found, m, more)
        parts[k : k + 2] = [(n + m, found)]
    (whole,) = parts
    return summed(*whole)


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


@pytest.mark.full
@pytest.mark.parametrize("dtype", ["u2", "f4"])
@pytest.mark.parametrize("width", [1, BLOCK, BLOCK + 1, SQUARE_BLOCK, SQUARE_BLOCK + 1, 9000])
def test_blocks(dtype, width):
    data = sample(dtype, (9, width))
    check(moments(data), data)


@pytest.mark.full
@pytest.mark.parametrize("dtype", ["u1", "u2", "i1", "i2"])
@pytest.mark.parametrize("n", [32768, 32769, 100_000])
def test_more_frames_than_squares_can_be_added_up_of(dtype, n):
    limits = np.iinfo(dtype)
    data = np.full((n, 3), limits.max, dtype=dtype)
    data[::2, 1] = limits.min
    data[5, 2] = limits.max - 1
    check(moments(data), data)
    assert moments(data)[2][0] == 0


@pytest.mark.parametrize("dtype", ["u1", "u2", "i1", "i2", ">u2", ">i2"])
def test_squares_of_narrow_integers_are_exact(dtype):
    """Test the ends and the middle, where parabolas are largest, and every number of frames."""
    limits = np.iinfo(dtype)
    middle = (limits.min + limits.max) // 2
    values = np.array([limits.min, middle, middle + 1, limits.max])
    for n in (*range(1, 20), 1000):
        columns = [np.full(n, value) for value in values]
        columns += [values[np.random.default_rng(n).integers(0, 4, n)] for _ in range(40)]
        data = np.stack(columns, axis=1).astype(dtype)
        _, total, varsum = moments(data)
        assert (total == data.sum(axis=0, dtype="i8")).all()
        wide = data.astype("i8")
        exact = (wide**2).sum(axis=0) * n - wide.sum(axis=0) ** 2
        np.testing.assert_array_equal(varsum, exact * (1 / n))


@pytest.mark.parametrize("dtype", ["u1", "u2", "i4", "f4", "f8", "c8"])
def test_pixels_that_never_change_deviate_by_nothing(dtype):
    tile = np.full((11, 20), 77, dtype=dtype)
    assert not moments(tile, tile[:3], tile)[2].any()


EXPONENTS = {"f4": 7, "f8": 12, "c8": 7, "c16": 12, "i4": 9, "u4": 9, "i8": 12, "u8": 12}
"""Dtypes, with the largest power of ten at which noise of about 1 is still resolved."""


def exact_squares(values):
    """Return exact sums of squared deviations of columns of numbers."""
    if values.dtype.kind == "c":
        return exact_squares(values.real) + exact_squares(values.imag)
    squares = []
    for column in values.T:
        numbers = [Fraction(x) for x in column.tolist()]
        mean = sum(numbers) / len(numbers)
        squares.append(float(sum((x - mean) ** 2 for x in numbers)))
    return np.array(squares)


@st.composite
def offset_values(draw):
    """Draw noise far from 0; the first value or one half may be far from the rest."""
    dtype = np.dtype(draw(st.sampled_from(sorted(EXPONENTS))))
    offset = 10.0 ** draw(st.integers(0, EXPONENTS[dtype.str[1:]]))
    frames = draw(st.integers(1, 150))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    noise = rng.normal(size=(frames, 4)) * draw(st.sampled_from([1, 3, 100]))
    if dtype.kind == "c":
        noise = noise + 1j * rng.normal(size=(frames, 4))
    values = offset * draw(st.sampled_from([1, -1] if dtype.kind != "u" else [1])) + noise
    values[: draw(st.integers(0, 2)), 1] = 0
    values[frames // 2 :, 2] = offset / 2
    values[:, 3] = offset
    kept_as = np.abs(values) if dtype.kind == "u" else values
    return kept_as.astype(dtype.newbyteorder(draw(st.sampled_from("<>"))))


@pytest.mark.full
@settings(deadline=None, max_examples=examples(150))
@given(offset_values(), st.data())
def test_an_offset_costs_no_precision(values, data):
    """Test any tiles, merged in any order, also with no frame or one frame."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(values)), max_size=6)))
    parts = np.split(values, cuts)
    order = [data.draw(st.integers(0, left)) for left in range(len(parts) - 2, -1, -1)]
    (n, total, varsum), one_by_one = merged([kept(p) for p in parts], order), moments(*parts)
    exact = exact_squares(values)
    for squares in (varsum, one_by_one[2]):
        np.testing.assert_allclose(squares, exact, rtol=1e-12, atol=0)
    assert n == len(values)
    true = values.astype(np.clongdouble if values.dtype.kind == "c" else np.longdouble).sum(axis=0)
    # terms are rounded, and those of a sum near 0 are larger than the sum
    rounding = 1e-15 * len(values) * np.abs(values).max(axis=0)  # whole numbers might overflow
    assert (np.abs(total - true.astype(total.dtype)) <= rounding).all()
    if values.dtype.kind in "iu":
        assert (total == true).all()


@pytest.mark.parametrize("offset", [1e9, 1e12])
def test_an_offset_costs_no_precision_over_many_frames(offset):
    """More tiles mean more merges, and more differences of means."""
    noise = np.random.default_rng(1).integers(-1000, 1000, (100_000, 3)) / 1024
    data = noise + offset
    n, _, varsum = moments(*np.split(data, 2000))
    true = noise.var(axis=0, dtype=np.longdouble) * n  # all digits of the noise have survived
    np.testing.assert_array_equal(data - offset, noise)
    np.testing.assert_allclose(varsum, true.astype("f8"), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "c16"])
def test_a_drifting_offset(dtype):
    """The offset differs between tiles, and not within a tile."""
    drift = np.arange(640) // 16 * 1e6
    data = (drift[:, np.newaxis] + np.random.default_rng(2).integers(0, 9, (640, 5))).astype(dtype)
    found = moments(*np.split(data, 40))
    np.testing.assert_allclose(found[2], exact_squares(data), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("place", [0, 1, 8, 40])
@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan, 3e38])
def test_sums_of_what_is_not_finite(dtype, place, odd):
    """Sums agree with NumPy's for an odd value in any frame, the first one included."""
    data = sample(dtype, (41, 6))
    data[place, 2] = odd
    with np.errstate(all="ignore"):
        wide = data.astype("c16" if data.dtype.kind == "c" else "f8")
        for found in (moments(data), moments(data[:7], data[7:])):
            total, expected = found[1].view("f8"), wide.sum(axis=0).view("f8")
            np.testing.assert_allclose(total, expected, rtol=1e-12, atol=1e-9)
            expected = wide.var(axis=0) * 41
            np.testing.assert_allclose(found[2], expected, rtol=1e-10)


def test_values_whose_differences_are_not_finite():
    data = np.array([[1e308, 5e307], [-1e308, 5e307], [5e307, 5e307]])
    np.testing.assert_allclose(moments(data)[1], [5e307, 1.5e308])


@pytest.mark.parametrize("shape", [(0, 3, 4), (3, 0, 4)])
def test_nothing(shape):
    found = Moments(*(np.ones(shape[1:]) for _ in range(3)))
    add_moments(np.zeros(shape), 2, found)
    merge_moments(2, found, 0, nothing(shape[1:], "f8"))
    assert all((array == 1).all() for array in found)
