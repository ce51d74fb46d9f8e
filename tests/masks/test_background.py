"""Masks that are zero on a flat background."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from udfdask import ArgumentValueError
from udfdask import masks as m


@given(arrays("float64", (4, 5), elements=st.floats(-10, 10).map(lambda v: round(v, 2))))
def test_balance(template):
    if not (template > 0).any() or not (template < 0).any():
        with pytest.raises(ArgumentValueError, match="needs positive and negative values"):
            m.balance(template)
        return
    before = template.copy()
    got = m.balance(template)
    np.testing.assert_array_equal(template, before)
    assert got.sum() == pytest.approx(0, abs=1e-9)
    np.testing.assert_array_equal(got[template >= 0], template[template >= 0])
    factor = -template[template > 0].sum() / template[template < 0].sum()
    np.testing.assert_allclose(got[template < 0], factor * template[template < 0])


@pytest.mark.parametrize(
    ("dtype", "result"), [("int8", "float64"), ("float32", "float32"), ("float64", "float64")]
)
def test_balance_keeps_floats_and_makes_floats_of_integers(dtype, result):
    got = m.balance(np.array([3, -1, -1], dtype=dtype))
    assert got.dtype == result
    np.testing.assert_allclose(got, [3, -1.5, -1.5])


@given(st.booleans(), st.floats(3, 12), st.floats(3, 12), st.floats(0.8, 3), st.floats(1, 4))
def test_background_subtraction(antialiased, cx, cy, ri, width):
    frame, soft = (cx, cy, 16, 15), {"antialiased": antialiased}
    got = m.background_subtraction(*frame, radius=ri + width, radius_inner=ri, **soft)
    disc = m.circular(*frame, radius=ri, **soft).astype(float)
    ring = m.ring(*frame, radius=ri + width, radius_inner=ri, **soft)
    np.testing.assert_allclose(got, disc - ring * disc.sum() / ring.sum(), atol=1e-12)
    assert got.sum() == pytest.approx(0, abs=1e-9)


def test_background_needs_pixels():
    with pytest.raises(ArgumentValueError, match=r"no pixel lies between radius_inner=0\.2 and"):
        m.background_subtraction(4, 4, 9, 9, radius=0.5, radius_inner=0.2)
    with pytest.raises(ArgumentValueError, match="radius_inner must be smaller"):
        m.background_subtraction(4, 4, 9, 9, radius=2, radius_inner=5)


@given(
    arrays("float64", 30, elements=st.floats(0, 20)),
    st.floats(1, 9),
    st.floats(0, 15),
    st.floats(0, 3),
)
def test_radial_gradient_background_subtraction(r, r0, r_outer, delta):
    def value(d):
        if d < r0 - delta / 2:
            return d / r0
        if d < r0 + delta / 2:
            return (r0 - d) / (delta / 2)
        return -1.0 if d <= r_outer else 0.0

    got = m.radial_gradient_background_subtraction(r, r0, r_outer, delta)
    np.testing.assert_allclose(got, [value(d) for d in r], atol=1e-9)
    assert got.min() >= -1
    assert got.max() <= 1
