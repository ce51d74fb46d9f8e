"""Any part of an array in any grid of stored chunks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suites import examples
from udfdask.io.stored_chunks import LibraryNeeded, read_part


def reader(values, stored, seen=None):
    """A function that reads chunks of the values, which are filled up at the edges."""
    grid = [-(-n // step) for n, step in zip(values.shape, stored, strict=True)]
    full = np.full([n * step for n, step in zip(grid, stored, strict=True)], 99, values.dtype)
    full[tuple(map(slice, values.shape))] = values

    def read_chunk(place, out):
        assert out.flags.c_contiguous
        where = tuple(slice(n * s, (n + 1) * s) for n, s in zip(place, stored, strict=True))
        out[:] = np.ascontiguousarray(full[where]).reshape(-1).view(np.uint8)
        if seen is not None:
            seen.append(place)

    return read_chunk


@given(data=st.data())
@settings(deadline=None, max_examples=examples(200))
def test_any_part_is_what_numpy_gives(data):
    shape = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple))
    stored = tuple(data.draw(st.integers(1, size + 3)) for size in shape)
    values = np.arange(np.prod(shape), dtype=data.draw(st.sampled_from(["<u2", ">u2", "f8", "u1"])))
    values = values.reshape(shape)
    index = []
    for size in shape:
        start = data.draw(st.integers(0, size))
        part = slice(start, data.draw(st.integers(start, size)))
        index.append(data.draw(st.sampled_from([part, -1, size // 2, slice(None)])))
    seen = []
    part = read_part(
        tuple(index),
        shape=shape,
        dtype=values.dtype,
        stored=stored,
        read_chunk=reader(values, stored, seen),
    )
    expected = values[tuple(index)]
    np.testing.assert_array_equal(part, expected)
    assert part.dtype == expected.dtype
    assert len(seen) == len(set(seen))  # each chunk is decoded once
    assert bool(seen) == bool(expected.size)


@pytest.mark.parametrize("index", [slice(None, None, 2), slice(None, None, -1)])
def test_steps_are_left_to_the_library(index):
    values = np.arange(9)
    with pytest.raises(LibraryNeeded):
        read_part(
            (index,), shape=(9,), dtype=values.dtype, stored=(4,), read_chunk=reader(values, (4,))
        )
