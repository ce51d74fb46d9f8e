"""Automatic chunks: whole frames and whole stored chunks, of a suitable size."""

import math

import dask
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suites import examples
from udfdask.io.lazy_source import StoredArray, choose_chunks

MIB = 1 << 20


def chosen(shape, stored, dtype="u2", sig_dims=2):
    """Largest sizes of the automatic chunks."""
    array = StoredArray(shape=shape, dtype=np.dtype(dtype), stored=stored)
    chunks = choose_chunks(array, sig_dims)
    assert tuple(map(sum, chunks)) == shape
    return tuple(map(max, chunks))


@pytest.mark.parametrize(
    ("shape", "stored", "expected"),
    [
        ((64, 64, 256, 256), (1, 16, 256, 256), (2, 64, 256, 256)),  # 16 MiB
        ((64, 64, 256, 256), (1, 1, 256, 256), (2, 64, 256, 256)),
        ((64, 64, 256, 256), (8, 8, 64, 64), (8, 16, 256, 256)),  # whole frames
        ((64, 60, 256, 256), (1, 16, 256, 256), (2, 60, 256, 256)),
        ((64, 100, 256, 256), (1, 16, 256, 256), (1, 100, 256, 256)),  # a whole row
        ((64, 64, 1024, 1024), (1, 1, 1024, 1024), (1, 64, 1024, 1024)),  # 64 frames
        ((64, 64, 4096, 4096), (1, 1, 512, 512), (1, 4, 4096, 4096)),  # 128 MiB
        ((4096, 4096, 256, 256), (1, 1, 256, 256), (1, 1024, 256, 256)),  # 2 TiB
        ((64, 64, 256, 256), (64, 64, 8, 8), None),  # frames would need all of the array
        ((64, 64, 256, 256), (64, 64, 256, 256), (64, 64, 256, 256)),
        ((8, 8, 16, 16), (16, 16, 32, 32), (8, 8, 16, 16)),
    ],
)
def test_blocks_of_stored_chunks(shape, stored, expected):
    found = chosen(shape, stored)
    if expected is None:
        assert found[:2] == stored[:2]
        assert math.prod(found) * 2 <= 128 * MIB
    else:
        assert found == expected


@settings(deadline=None, max_examples=examples(100))
@given(data=st.data())
def test_blocks_are_whole_stored_chunks_within_the_limit(data):
    ndim = data.draw(st.integers(2, 4))
    sig_dims = data.draw(st.integers(1, ndim))
    shape = tuple(data.draw(st.integers(1, 300)) for _ in range(ndim))
    stored = tuple(data.draw(st.integers(1, size + 2)) for size in shape)
    limit = data.draw(st.sampled_from(["1kiB", "1MiB", "20MiB", "128MiB"]))
    with dask.config.set({"array.chunk-size": limit}):
        found = chosen(shape, stored, sig_dims=sig_dims)
    most = dask.utils.parse_bytes(limit)
    for size, total, step in zip(found, shape, stored, strict=True):
        assert size == total or size % step == 0
    clipped = [min(pair) for pair in zip(stored, shape, strict=True)]
    assert math.prod(found) * 2 <= max(most, math.prod(clipped) * 2)
    nav = ndim - sig_dims
    if math.prod(clipped[:nav] + list(shape[nav:])) * 2 <= most:
        assert found[nav:] == shape[nav:]
