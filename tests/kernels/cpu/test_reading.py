"""Values of eight rows that kernels read together."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from eight_numbers import write_eight
from udfdask.kernels.numba_internals.reading import (
    TOGETHER,
    eight_at,
    noted,
    sum_of,
    value_at,
)
from udfdask.kernels.numba_internals.rows import as_native

numbers = st.integers(0, 2**32 - 1)


@njit
def read(flat, place, step, swap, out):
    wide = out.dtype.type
    for j in range(step):
        eight = eight_at(flat, place, step, j, swap, wide)
        write_eight(out, TOGETHER * j, eight)
        out[TOGETHER * step + j] = sum_of(eight, wide)
        out[(TOGETHER + 1) * step + j] = value_at(flat, place + j, swap, wide)


@njit
def combined(exact, numbers):
    wide = numbers.dtype.type
    bits = wide(0)
    return noted(exact, bits, eight_at(numbers, 0, 1, 0, None, wide))


@given(seed=numbers, place=st.integers(0, 5), step=st.integers(1, 6))
@settings(max_examples=10)
def test_eight_rows_and_their_sum(seed, place, step):
    rng = np.random.default_rng(seed)
    for dtype, wide in (("u1", "u4"), ("i2", "i4"), (">u2", "u4"), (">f4", "f8"), ("f2", "f8")):
        values = rng.integers(-100 if dtype[-2] != "u" else 0, 100, place + TOGETHER * step)
        stored = values.astype(dtype)
        flat, swap = as_native(stored)
        if flat.dtype == np.float16:  # the processor cannot convert it, and numba does not know it
            continue
        out = np.zeros((TOGETHER + 2) * step, wide)
        read(flat, place, step, swap, out)
        rows = values[place:].reshape(TOGETHER, step)
        np.testing.assert_array_equal(out[: TOGETHER * step], rows.T.reshape(-1))
        np.testing.assert_array_equal(out[TOGETHER * step : -step], rows.sum(axis=0))
        np.testing.assert_array_equal(out[-step:], rows[0])


@given(seed=numbers)
@settings(max_examples=10)
def test_bits_bound_the_size_of_each_number(seed):
    rng = np.random.default_rng(seed)
    for dtype in ("i8", "u8"):
        limits = np.iinfo(dtype)
        eight = rng.integers(limits.min, limits.max, TOGETHER, dtype=dtype)
        eight >>= rng.integers(0, 63, TOGETHER).astype(dtype)
        bits = int(combined(True, eight))
        assert all(abs(int(value)) <= bits + 1 for value in eight)
        assert bits < 2 * max(abs(int(value)) for value in eight) + 1
        assert combined(None, eight) == 0


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_special_values_are_read_as_they_are(value):
    out = np.zeros(TOGETHER + 2)
    read(np.full(TOGETHER, value, np.float32), 0, 1, None, out)
    np.testing.assert_array_equal(out, np.full(TOGETHER + 2, value))
