"""Vectors as colors: hue is direction, brightness is length."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("matplotlib", reason="matplotlib is in the plot extra")

from matplotlib.colors import rgb_to_hsv

from udfdask.plotting.colors import longest_shown, vector_colors

ANGLES = st.floats(-np.pi, np.pi)


@given(angle=ANGLES, length=st.floats(0.1, 1.0))
def test_hue_is_direction_and_brightness_is_length(angle, length):
    vector = length * np.array([np.sin(angle), np.cos(angle)])
    color = vector_colors(vector, 1.0)
    hue, saturation, value = rgb_to_hsv(color[:3])
    turns = (hue - angle / (2 * np.pi)) % 1.0
    assert min(turns, 1 - turns) < 1e-6
    assert saturation == pytest.approx(1)
    assert value == pytest.approx(length)
    assert color[3] == 1


@pytest.mark.parametrize("bad", [(np.nan, 1.0), (1.0, np.nan), (np.inf, 0.0)])
def test_what_is_missing_is_transparent(bad):
    colors = vector_colors(np.array([bad, (0.0, 1.0)]), 1.0)
    assert colors[:, 3].tolist() == [0, 1]
    assert np.isfinite(colors).all()


def test_the_longest_vector_is_brightest_but_not_a_broken_one():
    field = np.zeros((40, 40, 2))
    field[..., 1] = np.linspace(0, 2, 40)
    assert longest_shown(field) == pytest.approx(2)
    field[3, 3] = 1e6, 0
    assert longest_shown(field) == pytest.approx(2)
    field[:, :20] = np.nan
    assert longest_shown(field) == pytest.approx(2)
