"""Templates of diffraction disks, and sparse stacks of stamped ones."""

import numpy as np
import pytest
import sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from udfdask import ArgumentTypeError, ArgumentValueError
from udfdask import masks as m
from udfdask.masks import DiskTemplate, background_subtraction, circular
from udfdask.masks.template_stacks import shifted_templates


@pytest.mark.parametrize("radius", [0.3, 0.5, 1, 2.5, 3.2, 4])
@pytest.mark.parametrize("ring", [None, 0.5, 2])
def test_it_holds_all_of_the_disc_and_no_more(radius, ring):
    outer = None if ring is None else radius + ring
    array = DiskTemplate(radius=radius, radius_outer=outer).array()
    size = {"centerX": 10, "centerY": 10, "imageSizeX": 21, "imageSizeY": 21, "antialiased": True}
    if outer is None:
        large = circular(**size, radius=radius)
    else:
        large = background_subtraction(**size, radius=outer, radius_inner=radius)
    n = 10 - len(array) // 2
    np.testing.assert_allclose(array, large[n : 21 - n, n : 21 - n], rtol=1e-12)
    np.testing.assert_allclose(np.abs(large).sum(), np.abs(array).sum())
    assert array[0].any()


def test_a_template_at_all_places_of_a_window():
    stack = shifted_templates(np.arange(1, 7).reshape(2, 3), 2)
    assert stack.shape == (25, 6, 7)
    for k, mask in enumerate(stack):
        y, x = divmod(k, 5)
        np.testing.assert_array_equal(mask[y : y + 2, x : x + 3], [[1, 2, 3], [4, 5, 6]])
        assert np.count_nonzero(mask) == 6


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"radius": 0}, ArgumentValueError),
        ({"radius": "large"}, ArgumentTypeError),
        ({"radius": 3, "radius_outer": 3}, ArgumentValueError),
    ],
)
def test_wrong_radii(fields, error):
    with pytest.raises(error):
        DiskTemplate(**fields)


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


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"mask_index": []}, ArgumentValueError),
        ({"offsetX": [np.nan]}, ArgumentValueError),
        ({"template": np.ones(3)}, ValueError),
    ],
)
def test_mistakes_of_stamps(change, error):
    arguments = {name: [0] for name in ("mask_index", "offsetX", "offsetY")}
    arguments |= {"template": np.ones((2, 2)), "imageSizeX": 4, "imageSizeY": 4}
    with pytest.raises(error):
        m.sparse_template_multi_stack(**{**arguments, **change})
