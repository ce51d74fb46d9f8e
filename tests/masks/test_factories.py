"""Factories of masks and balanced backgrounds against plain loops over pixels."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from udfdask import ArgumentTypeError, ArgumentValueError
from udfdask import masks as m

coordinate = st.one_of(
    st.integers(-5, 15), st.floats(-5, 15, allow_nan=False, allow_subnormal=False)
)


@st.composite
def frames(draw):
    return {
        "centerX": draw(coordinate),
        "centerY": draw(coordinate),
        "imageSizeX": draw(st.integers(1, 12)),
        "imageSizeY": draw(st.integers(1, 12)),
    }


def per_pixel(function, imageSizeX, imageSizeY, centerX=0.0, centerY=0.0):
    """An array of function(dy, dx), one pixel at a time."""
    rows = [
        [function(y - centerY, x - centerX) for x in range(imageSizeX)] for y in range(imageSizeY)
    ]
    return np.array(rows)


def clip(value):
    return min(1.0, max(0.0, value))


@given(frames(), st.floats(0, 12))
def test_circular(frame, r):
    got = m.circular(**frame, radius=r)
    assert got.dtype == bool
    np.testing.assert_array_equal(got, per_pixel(lambda y, x: y * y + x * x <= r * r, **frame))
    soft = m.circular(**frame, radius=r, antialiased=True)
    assert soft.dtype == np.float64
    want = per_pixel(lambda y, x: clip(r + 0.5 - math.hypot(y, x)), **frame)
    np.testing.assert_allclose(soft, want, atol=1e-12)


radii = st.tuples(st.floats(0, 12), st.floats(0, 12)).filter(lambda p: p[0] != p[1])


@given(frames(), radii.map(sorted))
def test_ring(frame, pair):
    ri, r = pair

    def weight(y, x):
        d = math.hypot(y, x)
        return 1 - ri if d < 0.5 and ri < 0.5 else clip(min(d - ri, r - d) + 0.5)

    got = m.ring(**frame, radius=r, radius_inner=ri)
    assert got.dtype == bool
    want = per_pixel(lambda y, x: ri * ri < y * y + x * x <= r * r, **frame)
    np.testing.assert_array_equal(got, want)
    soft = m.ring(**frame, radius=r, radius_inner=ri, antialiased=True)
    np.testing.assert_allclose(soft, per_pixel(weight, **frame), atol=1e-12)


@given(frames(), st.floats(0.1, 12))
def test_radial_gradient(frame, r):
    for antialiased in (False, True):

        def value(y, x, soft=antialiased):
            d = math.hypot(y, x)
            return min(d / r, 1) * (clip(r + 0.5 - d) if soft else d <= r)

        got = m.radial_gradient(**frame, radius=r, antialiased=antialiased)
        assert got.dtype == np.float64
        np.testing.assert_allclose(got, per_pixel(value, **frame), atol=1e-12)


@given(st.integers(1, 9), st.integers(1, 9), st.sampled_from([None, "float64", "uint8"]))
def test_gradients(nx, ny, dtype):
    size = {"imageSizeX": nx, "imageSizeY": ny}
    option = {} if dtype is None else {"dtype": dtype}
    x, y = m.gradient_x(**size, **option), m.gradient_y(**size, **option)
    assert x.dtype == y.dtype == np.dtype(dtype or "float32")
    np.testing.assert_array_equal(x, per_pixel(lambda _, x: x, **size))
    np.testing.assert_array_equal(y, per_pixel(lambda y, _: y, **size))
    assert x.flags.c_contiguous
    assert y.flags.c_contiguous


whole = st.integers(-6, 14)


@given(whole, whole, whole, whole, st.integers(1, 9), st.integers(1, 9))
def test_rectangular(x, y, width, height, nx, ny):
    got = m.rectangular(x, y, width, height, nx, ny)
    assert got.dtype == bool
    columns = range(min(x, x + width), max(x, x + width) + 1)
    rows = range(min(y, y + height), max(y, y + height) + 1)
    want = per_pixel(lambda i, j: i in rows and j in columns, nx, ny)
    np.testing.assert_array_equal(got, want)


@given(st.floats(-3, 12), st.floats(-3, 12), st.integers(1, 10))
def test_window(start, stop, size):
    channels = [i for i in range(size) if start <= i < stop]
    if not channels:
        with pytest.raises(ArgumentValueError, match="no channel lies in the window"):
            m.window(start, stop, size)
        return
    got = m.window(start, stop, size)
    assert got.shape == (size,)
    assert got.dtype == bool
    np.testing.assert_array_equal(np.flatnonzero(got), channels)


@given(frames())
def test_polar_map(frame):
    r, phi = m.polar_map(**frame)
    np.testing.assert_allclose(r, per_pixel(math.hypot, **frame), atol=1e-12)
    np.testing.assert_allclose(phi, per_pixel(math.atan2, **frame), atol=1e-12)


def test_a_stretched_map_has_elliptical_circles():
    angle = 0.3
    r, phi = m.polar_map(60, 50, 120, 100, stretchY=2, angle=angle)
    y, x = np.mgrid[:100, :120]
    dy, dx = y - 50, x - 60
    along = dy * math.cos(angle) - dx * math.sin(angle)
    across = dx * math.cos(angle) + dy * math.sin(angle)
    np.testing.assert_allclose(r, np.hypot(along / 2, across))
    np.testing.assert_allclose(phi, np.arctan2(along / 2, across))
    # the area of the ellipse with the semi-axes 10 and 20
    assert (r <= 10).sum() == pytest.approx(math.pi * 10 * 20, rel=0.02)


@given(frames())
def test_bounding_radius_covers_the_frame(frame):
    r, _ = m.polar_map(**frame)
    bound = m.bounding_radius(**frame)
    assert isinstance(bound, int)
    assert r.max() + 1 <= bound <= r.max() + 4


FRAME = {"centerX": 4, "centerY": 4, "imageSizeX": 9, "imageSizeY": 9}


@pytest.mark.parametrize(
    "call",
    [
        lambda: m.circular(**FRAME, radius=-1),
        lambda: m.circular(4, 4, 0, 9, 1),
        lambda: m.circular(4, np.inf, 9, 9, 1),
        lambda: m.ring(**FRAME, radius=2, radius_inner=3),
        lambda: m.radial_gradient(**FRAME, radius=0),
        lambda: m.polar_map(**FRAME, stretchY=0),
        lambda: m.window(3, 1, 5),
    ],
)
def test_wrong_values(call):
    with pytest.raises(ArgumentValueError):
        call()


def test_a_type_that_is_no_number():
    with pytest.raises(ArgumentTypeError, match="imageSizeY must be an integer"):
        m.circular(4, 4, 9, 9.0, 1)
    with pytest.raises(ArgumentTypeError, match="centerX must be a number"):
        m.circular(None, 4, 9, 9, 1)


def test_an_infinite_radius_is_the_whole_frame():
    frame = (3, 2, 9, 7)
    assert m.circular(*frame, radius=np.inf).all()
    assert (m.circular(*frame, radius=np.inf, antialiased=True) == 1).all()
    for antialiased in (False, True):
        far = m.ring(*frame, radius=50, radius_inner=2, antialiased=antialiased)
        endless = m.ring(*frame, radius=np.inf, radius_inner=2, antialiased=antialiased)
        np.testing.assert_array_equal(endless, far)
    assert not m.ring(*frame, radius=np.inf, radius_inner=40).any()


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
