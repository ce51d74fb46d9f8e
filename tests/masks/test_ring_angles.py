"""Pixels shared between angles, against the exponential function."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suites import examples
from udfdask.masks.bins import share_angles


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


def test_no_pixels():
    for n_orders in (1, 25):
        shared = share_angles(np.zeros(0), n_orders, np.dtype("f4"))
        assert len(shared.first) == len(shared.weights) == 0
