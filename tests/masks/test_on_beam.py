"""Detectors that miss or cut the beam: in words, in pictures and on the command line."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udfdask.masks import circular, ring
from udfdask.masks.coverage import beam_remark

Y, X = np.indices((48, 56))


def beam(cy=20, cx=33, r=5):
    """A disk of 1000 counts over a background of 5."""
    return np.where(np.hypot(Y - cy, X - cx) <= r, 1000, 5)


@given(st.integers(8, 39), st.integers(8, 47), st.integers(2, 12))
def test_a_disk_on_the_beam_is_right_and_one_beside_it_is_not(cy, cx, r):
    pattern = beam(cy, cx)
    assert not beam_remark(circular(cx, cy, 56, 48, r), pattern)
    far = circular(9 if cx > 27 else 46, cy, 56, 48, 4)
    assert "%" in beam_remark(far, pattern)


def test_the_share_is_that_of_the_brightest_place():
    """500 of 10,900 counts, as in a disk of 8 pixels around the middle of a frame of 64."""
    y, x = np.indices((64, 64))
    pattern = 100 * (np.hypot(y - 24, x - 42) < 6)
    assert beam_remark(circular(32, 32, 64, 64, 8), pattern).startswith("has 5% of")
    assert pattern[circular(32, 32, 64, 64, 8)].sum() / pattern.sum() == pytest.approx(
        0.046, abs=1e-3
    )


@pytest.mark.parametrize(
    ("mask", "cuts"),
    [
        (ring(33, 20, 56, 48, 20, 7), False),
        (ring(28, 24, 56, 48, 20, 7), True),
        (ring(33, 20, 56, 48, 20, 3), True),
        (ring(33, 20, 56, 48, 4, 2), False),  # annular bright field
        (ring(10, 20, 56, 48, 8, 4), False),
        (ring(54, 46, 56, 48, 16, 6), False),  # a part of it is in the frame
    ],
)
def test_rings(mask, cuts):
    assert beam_remark(mask, beam()) == ("cuts the beam" if cuts else "")


def test_what_is_not_said():
    off = circular(10, 10, 56, 48, 5)
    flat = np.random.default_rng(0).poisson(9, Y.shape)
    assert not beam_remark(off, flat)
    assert not beam_remark(off, np.zeros(Y.shape))
    assert not beam_remark(off, np.full(Y.shape, np.nan))
    assert not beam_remark(np.zeros(Y.shape, bool), beam())
    broken = beam()
    broken[5, 40] = 10**9
    assert not beam_remark(circular(33, 20, 56, 48, 5), broken)
    assert not beam_remark(ring(33, 20, 56, 48, 30, 7), broken)


def test_pictures_and_the_command_line(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is an extra")
    import udfdask as ud
    from udfdask.io import open_file
    from udfdask.udfs import SumUDF, VirtualDetectorUDF

    np.save(tmp_path / "scan.npy", np.tile(beam().astype("u2"), (2, 3, 1, 1)))
    udfs = {"BF": VirtualDetectorUDF(r=4), "ADF": VirtualDetectorUDF("ring", ri=7, ro=15)}
    total = ud.run_udf(open_file(tmp_path / "scan.npy"), SumUDF())
    named = [
        text.get_text() for text in total.plot_detectors(udfs).axes[0].get_legend().get_texts()
    ]
    assert named[0].startswith("BF (has ")
    assert named[1] == "ADF (cuts the beam)"
