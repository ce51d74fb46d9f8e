"""The strategies give what they say."""

import numpy as np
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from suites import examples
from udfdask.testing.strategies import arrays, datasets

pytestmark = pytest.mark.full


@pytest.mark.parametrize("dtype", ["u1", ">u2", "i8", "f2", ">f8", "c16", "?"])
@given(data=st.data())
@settings(max_examples=examples(25))
def test_arrays_of_a_dtype_and_shape(dtype, data):
    array = data.draw(arrays((2, 3), dtype=dtype))
    assert array.shape == (2, 3)
    assert array.dtype == np.dtype(dtype)


def test_sums_of_floats_are_exact():
    def inexact(a):
        return a.astype("f4").sum() != a.astype("f8").sum()

    with pytest.raises(NoSuchExample):
        find(arrays((4, 4), dtype="f4"), inexact, settings=settings(max_examples=examples(50)))


@pytest.mark.parametrize(
    "wanted",
    [
        lambda d: d.array.dtype.byteorder == ">",
        lambda d: d.roi is not None and not d.roi.any(),
        lambda d: d.roi is None,
        lambda d: max(len(c) for c in d.array.chunks[-d.sig_dims :]) > 1,
        lambda d: d.sig_dims == 3,
    ],
)
def test_datasets_reach_corners(wanted):
    assert find(datasets(), wanted, settings=settings(max_examples=examples(2000))) is not None
