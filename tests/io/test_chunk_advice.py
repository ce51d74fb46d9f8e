"""Which chunks are suggested, and when none are."""

import math

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suites import examples
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.io import suggest_chunks
from udfdask.testing import raise_if_dask_computes
from udfdask.testing.strategies import chunkings, shapes

MIB = 1 << 20


def zeros(shape, chunks, dtype="u2"):
    return da.zeros(shape, chunks=chunks, dtype=dtype)


@settings(deadline=None, max_examples=examples(60))
@given(data=st.data())
def test_suggested_chunks_hold_whole_frames_and_are_suggested_once(data):
    shape = data.draw(shapes(max_side=9))
    x = zeros(tuple(shape), data.draw(chunkings(tuple(shape))))
    size = data.draw(st.sampled_from([64, 256, 1024, 8192]))
    with dask.config.set({"array.chunk-size": size}), raise_if_dask_computes():
        advice = suggest_chunks(x, shape.sig.dims)
        y = x.rechunk(advice.chunks)
        again = suggest_chunks(y, shape.sig.dims)
    assert y.shape == x.shape
    assert advice.is_change == (y.chunks != x.chunks)
    assert all(len(sizes) == 1 for sizes in y.chunks[shape.nav.dims :])
    assert not again.is_change
    frame = math.prod(shape.sig) * 2
    assert math.prod(y.chunksize) * 2 <= max(2 * size, frame)


@pytest.mark.parametrize(
    ("shape", "chunks", "suggested", "reason"),
    [
        ((256, 256, 128, 128), (8, 256, 128, 128), None, "Good."),
        (
            (256, 256, 128, 128),
            (1, 1, 128, 128),
            (16, 256, 128, 128),
            "small tasks takes longer",
        ),
        ((256, 256, 128, 128), (64, 256, 128, 128), (16, 256, 128, 128), "keeps one or two"),
        ((256, 256, 128, 128), (8, 256, 32, 128), (8, 256, 128, 128), "divided into 4 chunks"),
        ((4, 4, 8, 8), (4, 4, 8, 8), None, "1 chunk of up to 2.00 kiB. Good."),
        ((3, 8192, 16384), (1, 4096, 4096), (1, 8192, 16384), "divided into 8 chunks"),
    ],
)
def test_what_is_suggested(shape, chunks, suggested, reason):
    x = zeros(shape, chunks)
    advice = suggest_chunks(x, sig_dims=2)
    wanted = x if suggested is None else x.rechunk(suggested)
    assert advice.chunks == wanted.chunks
    assert advice.is_change is (suggested is not None)
    assert reason in str(advice)
    if suggested:
        assert f"array.rechunk({suggested})" in advice.reason


@pytest.mark.parametrize(
    ("array", "sig_dims", "error", "match"),
    [
        (np.ones((2, 3)), 1, ArgumentTypeError, r"expected a dask array, got a ndarray"),
        (zeros((2, 3), 1), 3, ArgumentValueError, "sig_dims must be from 1 to 2"),
        (zeros((2, 3), 1), 1.5, ArgumentValueError, "sig_dims must be from 1 to 2"),
        (zeros(9, 1)[zeros(9, 1) > 0], 1, ArgumentValueError, "unknown chunk sizes"),
    ],
)
def test_arrays_that_nothing_is_suggested_for(array, sig_dims, error, match):
    with pytest.raises(error, match=match):
        suggest_chunks(array, sig_dims)
