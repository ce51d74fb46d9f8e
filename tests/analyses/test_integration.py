"""The phase whose gradient a field is, against phases that are known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from udfdask import ArgumentValueError
from udfdask.analyses import integrate_gradient
from udfdask.analyses.integration import BORDERS


def waves(shape, steps, seed):
    """A phase of slow waves, with a period that fits the scan, and its gradient."""
    rng = np.random.default_rng(seed)
    y, x = (step * np.arange(n) for n, step in zip(shape, steps, strict=True))
    phase, dy, dx = np.zeros((3, *shape))
    for _ in range(3):
        ky, kx = (
            2 * np.pi * rng.integers(-2, 3) / (n * step)
            for n, step in zip(shape, steps, strict=True)
        )
        angle = ky * y[:, None] + kx * x + rng.uniform(0, 6)
        phase += np.cos(angle)
        dy -= ky * np.sin(angle)
        dx -= kx * np.sin(angle)
    return phase, dy, dx


@given(
    shape=st.tuples(st.integers(8, 25), st.integers(8, 25)),
    steps=st.tuples(st.sampled_from([0.1, -2.0, 7.0]), st.sampled_from([0.1, 3.0])),
    seed=st.integers(0, 99),
)
@settings(deadline=None)
def test_periodic_phases_come_back(shape, steps, seed):
    phase, dy, dx = waves(shape, steps, seed)
    found = integrate_gradient(dy, dx, steps=steps, borders="periodic")
    np.testing.assert_allclose(found, phase - phase.mean(), atol=1e-9)


def smooth(shape, steps=(1.0, 1.0)):
    """A phase that does not fit the scan, and its gradient."""
    y, x = (
        (step * np.arange(n))[tuple(None if k != axis else slice(None) for k in (0, 1))]
        for axis, (n, step) in enumerate(zip(shape, steps, strict=True))
    )
    b = 2 * np.pi / (20 * abs(steps[0]))
    phase = np.sin(b * y + 1) + 0.5 * np.cos(b * (y + 0.7 * x)) + 0.02 * b * x
    dy = b * np.cos(b * y + 1) - 0.5 * b * np.sin(b * (y + 0.7 * x))
    dx = -0.35 * b * np.sin(b * (y + 0.7 * x)) + 0.02 * b
    return phase, dy, np.broadcast_to(dx, phase.shape).copy()


def test_mirrored_borders_need_no_period():
    phase, dy, dx = smooth((60, 70))
    found = integrate_gradient(dy, dx)
    error = found - phase
    assert np.std(error) < 0.01
    assert np.std(error) < 0.1 * np.std(integrate_gradient(dy, dx, borders="periodic") - phase)


@pytest.mark.parametrize("steps", [(1.0, 1.0), (0.1, 0.3), (-0.5, 0.5)])
def test_holes_and_islands(steps):
    phase, dy, dx = smooth((40, 50), steps)
    known = np.ones(phase.shape, bool)
    known[10:20, 5:30] = False  # a hole
    known[:, 40] = False  # two regions
    known[3, 3] = False
    dy[~known] = np.nan
    dx[10:20, 5:30] = np.inf
    found = integrate_gradient(dy, dx, steps=steps)
    np.testing.assert_array_equal(np.isnan(found), ~known)
    for part in (np.s_[:, :40], np.s_[:, 41:]):
        here = known[part]
        error = (found - phase)[part][here]
        assert abs(found[part][here].mean()) < 1e-9
        assert np.std(error) < 0.03


def mean_slope(field, first, second):
    """The mean of the polynomial through all known values of two, four or six in a row."""
    step = np.subtract(second, first)
    for reach in (2, 1, 0):
        places = [tuple(first + k * step) for k in range(-reach, reach + 2)]
        inside = all(
            0 <= k < n for place in places for k, n in zip(place, field.shape, strict=True)
        )
        values = [field[place] for place in places] if inside else [np.nan]
        if np.isfinite(values).all():
            fit = np.polynomial.Polynomial.fit(range(-reach, reach + 2), values, len(values) - 1)
            return fit.integ()(1) - fit.integ()(0)
    raise AssertionError


@given(st.integers(2, 9), st.integers(2, 9), st.integers(0, 99))
@settings(deadline=None)
def test_the_least_squares_of_neighbors(ny, nx, seed):
    rng = np.random.default_rng(seed)
    dy, dx = rng.normal(size=(2, ny, nx))
    dy[rng.random((ny, nx)) < 0.3] = np.nan
    dy[0, 0] = np.nan
    dx[np.isnan(dy)] = np.nan
    found = integrate_gradient(dy, dx, steps=(0.5, 2.0))
    places = {place: k for k, place in enumerate(zip(*np.nonzero(~np.isnan(dy)), strict=True))}
    rows, slopes = [], []
    for (y, x), k in places.items():
        for other, step, field in (((y + 1, x), 0.5, dy), ((y, x + 1), 2.0, dx)):
            if other in places:
                row = np.zeros(len(places))
                row[[k, places[other]]] = -1 / step, 1 / step
                rows.append(row)
                slopes.append(mean_slope(field, (y, x), other))
    if not rows:
        return
    matrix, values = np.array(rows), found[~np.isnan(dy)]
    best = np.linalg.lstsq(matrix, np.array(slopes), rcond=None)[0]
    np.testing.assert_allclose(matrix @ values, matrix @ best, atol=1e-6)


@pytest.mark.parametrize("borders", BORDERS)
def test_a_high_pass_damps_slow_waves(borders):
    x = np.arange(64)[None] * np.ones((32, 1))
    slow, fast = np.cos(2 * np.pi * x / 64), np.cos(2 * np.pi * x / 8)
    field = [2 * np.pi / n * -np.sin(2 * np.pi * x / n) for n in (64, 8)]
    found = integrate_gradient(0 * x, sum(field), borders="periodic", high_pass=1 / 64)
    strength = [np.vdot(found, wave) / np.vdot(wave, wave) for wave in (slow, fast)]
    np.testing.assert_allclose(strength, [1 / 2, 64 / 65], rtol=1e-9)
    assert np.std(integrate_gradient(0 * x, sum(field), borders=borders, high_pass=1)) < 0.1


@pytest.mark.parametrize(
    ("shapes", "options"),
    [
        (((4, 5), (4, 5)), {"borders": "mirror"}),
        (((4, 5), (4, 5)), {"high_pass": -1}),
        (((4, 5), (4, 5)), {"steps": (0.0, 1.0)}),
        (((4, 5), (5, 4)), {}),
        (((4,), (4,)), {}),
    ],
)
def test_mistakes(shapes, options):
    with pytest.raises(ArgumentValueError):
        integrate_gradient(*map(np.ones, shapes), **options)


def test_nothing_is_known():
    assert np.isnan(integrate_gradient(*np.full((2, 3, 4), np.nan))).all()
