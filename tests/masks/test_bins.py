"""Radial bins: weights, their sum, sparse and dense; their members, and the angles of these."""

import math

import numpy as np
import pytest
import sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from suites import examples
from udfdask import ArgumentValueError
from udfdask import masks as m
from udfdask.masks.bins import find_members, share_angles


def plain_bins(centerX, centerY, imageSizeX, imageSizeY, radius, radius_inner, n_bins):
    width = (radius - radius_inner) / n_bins
    stack = np.zeros((n_bins, imageSizeY, imageSizeX))
    for b in range(n_bins):
        r0 = radius_inner + (b + 0.5) * width
        for y in range(imageSizeY):
            for x in range(imageSizeX):
                d = math.hypot(y - centerY, x - centerX)
                stack[b, y, x] = min(1, max(0, width / 2 + 0.5 - abs(d - r0)))
                if b == 0 and radius_inner < 0.5 and d < 0.5:
                    stack[b, y, x] = 1 - radius_inner
    return stack


@st.composite
def cases(draw):
    inner = draw(st.one_of(st.just(0), st.floats(0, 6)))
    return {
        "centerX": draw(st.floats(-3, 12)),
        "centerY": draw(st.floats(-3, 12)),
        "imageSizeX": draw(st.integers(1, 9)),
        "imageSizeY": draw(st.integers(1, 9)),
        "radius": inner + draw(st.floats(0.5, 8)),
        "radius_inner": inner,
        "n_bins": draw(st.integers(1, 5)),
    }


@given(cases())
@settings(deadline=None)  # sparse is imported in the first example
def test_dense_and_sparse_follow_the_formula(case):
    want = plain_bins(**case)
    dense = m.radial_bins(**case, use_sparse=False)
    assert dense.dtype == np.float64
    np.testing.assert_allclose(dense, want, atol=1e-9)
    assert m.radial_bins(**case, use_sparse=True, dtype="f4").dtype == np.float32
    thin = m.radial_bins(**case, use_sparse=True)
    assert isinstance(thin, sparse.COO)
    np.testing.assert_array_equal(thin.todense(), dense)
    assert thin.nnz == np.count_nonzero(dense)


@given(cases())
@settings(deadline=None)  # sparse is imported in the first example
def test_normalized_bins_have_a_sum_of_one(case):
    for use_sparse in (False, True):
        bins = m.radial_bins(**case, use_sparse=use_sparse, normalize=True)
        sums = np.asarray(bins.sum(axis=(1, 2)).todense() if use_sparse else bins.sum(axis=(1, 2)))
        empty = plain_bins(**case).sum(axis=(1, 2)) < 1e-9
        np.testing.assert_allclose(sums[~empty], 1)


@pytest.mark.parametrize("center", [(7, 7), (7.5, 7.5), (7.3, 6.9), (7, 7.5), (-2.2, 20)])
def test_bins_of_the_whole_frame_add_up_to_one_everywhere(center):
    bins = m.radial_bins(center[1], center[0], 15, 15, use_sparse=False)
    assert len(bins) == m.bounding_radius(center[1], center[0], 15, 15)
    total = bins.sum(axis=0)
    # a pixel at the center reaches a little into the second bin as well, as upstream
    y, x = np.mgrid[:15, :15]
    away = np.hypot(y - center[0], x - center[1]) >= 0.5
    np.testing.assert_allclose(total[away], 1)
    assert total.max() < 1.5


def test_sparse_where_a_bin_covers_less_than_a_tenth():
    # the last bin, from radius 9 to 10: pi * 19 = 59.7 pixels
    assert isinstance(m.radial_bins(12, 12, 24, 25, radius=10), sparse.COO)  # of 600
    assert isinstance(m.radial_bins(12, 12, 24, 24, radius=10), np.ndarray)  # of 576


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"n_bins": 0}, ArgumentValueError),
        ({"radius": 2, "radius_inner": 2}, ArgumentValueError),
    ],
)
def test_mistakes(options, error):
    with pytest.raises(error):
        m.radial_bins(4, 4, 9, 9, **options)


def dense(members, origin, shape):
    """The stack that members of a window make."""
    stack = np.zeros((len(members.bounds) - 1, *shape))
    for b, (start, stop) in enumerate(zip(members.bounds[:-1], members.bounds[1:], strict=True)):
        y, x = members.y[start:stop] - origin[0], members.x[start:stop] - origin[1]
        stack[b, y, x] = members.weight[start:stop]
    return stack


@given(cases(), st.data())
@settings(deadline=None)
def test_members_are_those_of_the_stack(case, data):
    cx, cy, nx, ny, *rings = case.values()
    members = find_members((cy, cx), (ny, nx), *rings)
    stack = m.radial_bins(**case, use_sparse=False)
    np.testing.assert_array_equal(dense(members, (0, 0), (ny, nx)), stack)
    np.testing.assert_allclose(members.totals, stack.sum(axis=(1, 2)), rtol=1e-12)
    assert (members.weight > 0).all()
    oy, ox = data.draw(st.integers(0, ny)), data.draw(st.integers(0, nx))
    window = data.draw(st.integers(0, ny - oy)), data.draw(st.integers(0, nx - ox))
    part = stack[:, oy : oy + window[0], ox : ox + window[1]]
    np.testing.assert_array_equal(dense(members.within((oy, ox), window), (oy, ox), window), part)


@pytest.mark.parametrize(("real", "most"), [("f4", 2e-7), ("f8", 1e-12)])
@settings(max_examples=examples(40))
@given(st.integers(1, 120), st.integers(0, 99))
def test_shared_pixels_have_the_waves_of_their_angle(real, most, n_orders, seed):
    phi = np.append(np.random.default_rng(seed).uniform(-np.pi, np.pi, 50), [-np.pi, 0, np.pi])
    first, weights, waves = share_angles(phi, n_orders, np.dtype(real))
    assert weights.dtype == real
    angles, found = len(waves), 0
    for t in range(weights.shape[1]):
        found = found + weights[:, t, np.newaxis] * waves[(first + t) % angles]
    wanted = np.exp(1j * np.arange(n_orders) * phi[:, np.newaxis])
    assert np.abs(found.view(complex) - wanted).max() < most
