"""Signs of the maps, and taking them apart again."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udfdask import ArgumentTypeError, ArgumentValueError
from udfdask.corrections import coordinates as c

Y, X = np.array([1.0, 0.0]), np.array([0.0, 1.0])


def test_a_quarter_turn_sends_x_to_y_and_y_to_minus_x():
    for quarter in (c.rotate(math.pi / 2), c.rotate_deg(90)):
        np.testing.assert_allclose(quarter @ X, Y, atol=1e-15)
        np.testing.assert_allclose(quarter @ Y, -X, atol=1e-15)


@given(st.floats(-7, 7))
def test_rotate(radians):
    cos, sin = math.cos(radians), math.sin(radians)
    np.testing.assert_allclose(c.rotate(radians), [[cos, sin], [-sin, cos]])
    np.testing.assert_allclose(c.rotate_deg(math.degrees(radians)), c.rotate(radians), atol=1e-12)


def test_flips_and_scales():
    np.testing.assert_array_equal(c.flip_y() @ (3, 4), (-3, 4))
    np.testing.assert_array_equal(c.flip_x() @ (3, 4), (3, -4))
    np.testing.assert_array_equal(c.scale(2.5) @ (2, 4), (5, 10))
    np.testing.assert_array_equal(c.identity(), np.eye(2))
    for matrix in (c.flip_y(), c.flip_x(), c.scale(2), c.identity(), c.rotate(1)):
        assert matrix.shape == (2, 2)
        assert matrix.dtype == np.float64


@given(st.floats(1e-3, 1e3), st.floats(-3.1, 3.1), st.booleans())
def test_apart_and_together(factor, radians, flip):
    matrix = c.scale(factor) @ c.rotate(radians) @ (c.flip_y() if flip else c.identity())
    got = c.scale_rotate_flip_y(matrix)
    assert [type(part) for part in got] == [float, float, bool]
    assert got == (pytest.approx(factor), pytest.approx(radians, abs=1e-9), flip)


PARTS = [c.flip_x(), c.flip_y(), c.rotate(0.7), c.rotate_deg(-130), c.scale(0.3), c.scale(-2)]


@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=6))
def test_any_product_comes_back(parts):
    matrix = np.linalg.multi_dot([np.eye(2), *parts])
    factor, radians, flip = c.scale_rotate_flip_y(matrix)
    assert factor > 0
    again = c.scale(factor) @ c.rotate(radians) @ (c.flip_y() if flip else c.identity())
    np.testing.assert_allclose(again, matrix, atol=1e-9)


@pytest.mark.parametrize(
    ("matrix", "error"),
    [
        (np.diag([1, 2]), ArgumentValueError),
        ([[1, 0.6], [0, 0.8]], ArgumentValueError),
        ([[1, 1], [0, 0]], ArgumentValueError),
        (np.zeros((2, 2)), ArgumentValueError),
        (np.eye(3), ArgumentValueError),
        (np.full((2, 2), np.nan), ArgumentValueError),
        ("turn", ArgumentTypeError),
    ],
)
def test_mistakes(matrix, error):
    with pytest.raises(error):
        c.scale_rotate_flip_y(matrix)
