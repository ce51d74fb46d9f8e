"""Sparse stacks of stamped templates."""

import numpy as np
import pytest
import sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from udfdask import ArgumentTypeError, ArgumentValueError
from udfdask import masks as m

stamps = st.lists(
    st.tuples(st.integers(0, 3), st.integers(-4, 9), st.integers(-4, 9)), min_size=1, max_size=8
)


@given(stamps, arrays("float64", (3, 2), elements=st.integers(-3, 3).map(float)))
@settings(deadline=None)  # sparse is imported in the first example
def test_templates(where, template):
    index, left, top = zip(*where, strict=True)
    got = m.sparse_template_multi_stack(index, left, top, template, imageSizeX=7, imageSizeY=5)
    want = np.zeros((max(index) + 1, 5, 7))
    for k, x0, y0 in where:
        for i in range(3):
            for j in range(2):
                if 0 <= y0 + i < 5 and 0 <= x0 + j < 7:
                    want[k, y0 + i, x0 + j] += template[i, j]
    assert isinstance(got, sparse.COO)
    np.testing.assert_array_equal(got.todense(), want)


@given(stamps, st.floats(0, 3))
@settings(deadline=None)  # sparse is imported in the first example
def test_circles(where, radius):
    index, cx, cy = zip(*where, strict=True)
    got = m.sparse_circular_multi_stack(index, cx, cy, 7, 5, radius)
    assert got.dtype == bool
    want = np.zeros((max(index) + 1, 5, 7), dtype=bool)
    for k, x, y in where:
        want[k] |= m.circular(x, y, 7, 5, radius)
    np.testing.assert_array_equal(got.todense(), want)


def test_positions_are_rounded_and_may_be_ranges_and_arrays():
    got = m.sparse_circular_multi_stack(range(2), np.array([2.6, 3.4]), [1.9, 2.1], 8, 6, 1)
    want = m.sparse_circular_multi_stack([0, 1], [3, 3], [2, 2], 8, 6, 1)
    np.testing.assert_array_equal(got.todense(), want.todense())


def test_the_dtype_is_the_template_s():
    stack = m.sparse_template_multi_stack([0], [0], [0], np.ones((1, 1), dtype="uint16"), 2, 2)
    assert stack.dtype == np.uint16


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"mask_index": []}, ArgumentValueError, "must have the same length, not 0, 1 and 1"),
        (
            {"mask_index": [], "offsetX": [], "offsetY": []},
            ArgumentValueError,
            "at least one number and no negative numbers, not nothing",
        ),
        ({"mask_index": [-1]}, ArgumentValueError, "no negative numbers, not -1"),
        ({"offsetX": [np.nan]}, ArgumentValueError, "offsetX must contain finite numbers"),
        ({"offsetY": ["a"]}, ArgumentTypeError, "offsetY must contain numbers"),
        ({"template": np.ones(3)}, ArgumentValueError, r"two axes.*\(3,\)"),
        ({"imageSizeX": 0}, ArgumentValueError, "imageSizeX must be at least 1"),
    ],
)
def test_mistakes(change, error, message):
    given = {
        "mask_index": [0],
        "offsetX": [0],
        "offsetY": [0],
        "template": np.ones((2, 2)),
        "imageSizeX": 4,
        "imageSizeY": 4,
    }
    with pytest.raises(error, match=message):
        m.sparse_template_multi_stack(**{**given, **change})


def test_a_negative_radius():
    with pytest.raises(ArgumentValueError, match="radius must be 0 or more"):
        m.sparse_circular_multi_stack([0], [1], [1], 4, 4, -1)
