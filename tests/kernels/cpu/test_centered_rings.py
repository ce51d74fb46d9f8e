"""Weighted sums over rings around a center of each frame, against the weights of `find_members`."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from every_dtype import FOREIGN, KNOWN, sample
from suites import examples
from udfdask.kernels.cpu.centered_rings import add_rings_about
from udfdask.kernels.numba_internals.rows import as_native, rows_in_memory
from udfdask.masks.bins import find_members
from udfdask.masks.polar import ROUND

REAL = [d for d in KNOWN + FOREIGN if np.dtype(d).kind != "c"]


def found(tile, origin, centers, r, ri, n):
    """Sums and weights; both are added to what is there."""
    native, swap = as_native(tile)
    flat, *steps = rows_in_memory(native)
    sums, covered = np.zeros((2, len(tile), n))
    window = (*origin, *tile.shape[1:])
    add_rings_about(flat, *steps, swap, window, centers, ROUND, ri, (r - ri) / n, sums, covered)
    return sums, covered


def plain(tile, origin, centers, r, ri, n):
    height, width = tile.shape[1:]
    sums, covered = np.zeros((2, len(tile), n))
    for f, (cy, cx) in enumerate(centers):
        members = find_members((cy - origin[0], cx - origin[1]), (height, width), r, ri, n)
        ring = np.repeat(np.arange(n), np.diff(members.bounds))
        np.add.at(covered[f], ring, members.weight)
        values = tile[f, members.y, members.x].astype("f8")
        np.add.at(sums[f], ring, values * members.weight)
    return sums, covered


@st.composite
def cases(draw):
    sig = draw(st.tuples(st.integers(1, 30), st.integers(1, 50)))
    center = st.tuples(st.floats(-9, sig[0] + 9), st.floats(-9, sig[1] + 9))
    inner = draw(st.sampled_from([0.0, 0.3, 7.0]))
    rings = inner + draw(st.floats(1, 40)), inner, draw(st.sampled_from([1, 3, 20]))
    return sig, np.array(draw(st.lists(center, min_size=3, max_size=3))), rings


@pytest.mark.parametrize("dtype", REAL)
@settings(max_examples=examples(20))
@given(cases(), st.booleans())
def test_every_dtype(dtype, case, part):
    (height, width), centers, rings = case
    origin = (height // 3, width // 3) if part else (0, 0)
    tile = sample(dtype, (3, height, width))[:, origin[0] :, origin[1] :]
    largest = np.abs(tile.astype("f8")).max(initial=1)
    sums, covered = found(tile, origin, centers, *rings)
    wanted, weights = plain(tile, origin, centers, *rings)
    np.testing.assert_allclose(covered, weights, rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(sums, wanted, rtol=1e-12, atol=1e-10 * largest)


@pytest.mark.parametrize("dtype", ["f4", ">f8"])
@pytest.mark.parametrize("n", [12, 5, 40])
def test_only_rings_with_a_weight_get_nan(dtype, n):
    tile = np.ones((3, 41, 41), dtype)
    centers = np.full((3, 2), 20.0)
    tile[0, 20, 36], tile[1, 20, 25], tile[2, 24, 23] = np.nan, np.inf, np.nan
    sums, _ = found(tile, (0, 0), centers, 12.0, 0.0, n)
    with np.errstate(invalid="ignore"):
        wanted, _ = plain(tile, (0, 0), centers, 12.0, 0.0, n)
    np.testing.assert_allclose(sums, wanted, rtol=1e-12)
    assert np.isfinite(sums[0]).all()
    assert not np.isfinite(sums[1:]).all(axis=1).any()


@pytest.mark.parametrize("r", [50.0, 1e20])
def test_a_ring_larger_than_any_frame(r):
    tile = sample("u2", (2, 5, 7))
    sums, covered = found(tile, (0, 0), np.full((2, 2), 2.25), r, 0.0, 1)
    np.testing.assert_array_equal(covered, 35)
    np.testing.assert_array_equal(sums[:, 0], tile.sum(axis=(1, 2)))


@pytest.mark.parametrize("n", [1, 4])
def test_rings_much_thinner_than_a_pixel(n):
    tile = sample("u2", (2, 15, 17))
    centers = np.array([[7.0, 8.0], [6.3, 30.1]])
    for inner, thickness in ((3.0, 1e-9), (0.0, 1e-12), (0.0, 1e-320)):
        rings = inner + n * thickness, inner, n
        sums, covered = found(tile, (0, 0), centers, *rings)
        wanted, weights = plain(tile, (0, 0), centers, *rings)
        np.testing.assert_allclose(covered, weights, rtol=1e-12, atol=1e-10)
        np.testing.assert_allclose(sums, wanted, rtol=1e-12, atol=1e-6)
