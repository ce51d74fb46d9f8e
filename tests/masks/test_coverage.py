"""The number of pixels that a disk or a ring covers, and whether the edge of the frame cuts it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udfdask.masks import circular, ring
from udfdask.masks.coverage import Ring, measure

SIZES = st.tuples(st.integers(1, 9), st.integers(1, 9))
CENTERS = st.floats(-3, 12) | st.integers(-3, 12)
RADII = st.floats(0, 14) | st.integers(0, 14)
FAR = 20
"""No disk of these reaches farther beyond the edge."""


def distances(center, sig, around=0):
    """Return the squared distance of each pixel, also of those `around` a frame."""
    y, x = (np.arange(-around, n + around) for n in sig)
    return (y[:, np.newaxis] - center[0]) ** 2 + (x - center[1]) ** 2


@given(sig=SIZES, cy=CENTERS, cx=CENTERS, r=RADII)
def test_pixels_of_a_disk(sig, cy, cx, r):
    covered, is_cut = measure(Ring((cy, cx), r), sig)
    mask = circular(cx, cy, sig[1], sig[0], r)
    assert covered == mask.sum()
    inside = distances((cy, cx), sig) <= r * r
    assert covered == inside.sum()
    if covered:
        everywhere = distances((cy, cx), sig, around=FAR) <= r * r
        assert is_cut == bool(everywhere.sum() > inside.sum())


@given(sig=SIZES, cy=CENTERS, cx=CENTERS, radii=st.tuples(RADII, RADII))
def test_pixels_of_a_ring(sig, cy, cx, radii):
    ri, ro = sorted(radii)
    if ri == ro:
        ro += 1
    assert measure(Ring((cy, cx), ro, ri), sig)[0] == ring(cx, cy, sig[1], sig[0], ro, ri).sum()


@given(sig=SIZES, stretch=st.floats(1, 4), angle=st.floats(-180, 180), r=RADII)
def test_pixels_of_an_ellipse(sig, stretch, angle, r):
    center = sig[0] // 2, sig[1] // 2
    ellipse = {"stretch": stretch, "stretch_angle": angle}
    covered, is_cut = measure(Ring(center, r, **ellipse), sig)
    assert covered == circular(center[1], center[0], sig[1], sig[0], r, **ellipse).sum()
    padded = circular(
        center[1] + FAR, center[0] + FAR, sig[1] + 2 * FAR, sig[0] + 2 * FAR, r, **ellipse
    )
    if is_cut:  # a thin slanting ellipse can miss the pixels next to the frame
        assert padded.sum() > covered


def test_each_edge_of_the_frame_cuts():
    """A disk that has a pixel beyond one edge only is cut."""
    for center in ((1, 4), (7, 4), (4, 1), (4, 7)):
        assert measure(Ring(center, 2), (9, 9))[1], center
        assert not measure(Ring(center, 1), (9, 9))[1], center


@pytest.mark.parametrize("r", [math.inf, 0])
def test_radii_that_are_never_cut(r):
    assert measure(Ring((2, 2), r), (5, 6)) == (1 if r == 0 else 30, False)
