"""What `explain` says about detectors and merges, and what makes a run warn."""

import math
import re
import warnings

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import udfdask as ud
from udf_zoo import RowsMerge
from udfdask.errors import UDFWarning
from udfdask.masks import circular, rectangular, ring
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import FEMUDF, CoMUDF, SumUDF, VirtualDetectorUDF

SIG = (12, 16)
X = da.ones((3, 4, *SIG), chunks=(2, 4, *SIG), dtype="uint16")


def axes(unit="mrad", scales=(0.4, 0.4)):
    sig = [ud.Axis(name=n, unit=unit, scale=s) for n, s in zip(("ky", "kx"), scales, strict=True)]
    return [ud.Axis(name="y"), ud.Axis(name="x"), *sig]


def lines(udf, label="detector", array=X, **options):
    """Return the lines of `explain` with a label, without it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UDFWarning)
        text = ud.explain(array, udf, **options).text
    found = [line for line in text.splitlines() if line.startswith(label.ljust(10))]
    return [line[10:] for line in found]


def warnings_of(udf, array=X, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ud.run_udf(array, udf, **options)
    assert all(one.category is UDFWarning for one in caught)
    return [str(one.message) for one in caught]


def covered(line):
    """Return the number of pixels that a line says."""
    return int(re.search(r"covers (?:all )?([\d,]+) ", line)[1].replace(",", ""))


RADII = st.floats(0.5, 14)


@given(
    detector=st.one_of(
        st.tuples(st.just("disk"), RADII).map(lambda d: ("disk", {"r": d[1]})),
        st.lists(RADII, min_size=2, max_size=2, unique=True).map(
            lambda r: ("ring", {"ri": min(r), "ro": max(r)})
        ),
    ),
    cy=st.integers(0, 11),
    cx=st.integers(0, 15),
)
def test_the_pixels_of_the_mask_are_told(detector, cy, cx):
    """A disk or ring says how many pixels it covers; a run warns exactly if these are all."""
    shape, radii = detector
    if shape == "disk":
        mask = circular(cx, cy, *SIG[::-1], radii["r"])
    else:
        mask = ring(cx, cy, *SIG[::-1], radii["ro"], radii["ri"])
    if not mask.any():
        return  # an error
    udf = VirtualDetectorUDF(shape, cy=cy, cx=cx, **radii)
    (line,) = lines(udf)
    assert covered(line) == mask.sum()
    assert all(f"{name} = {r:g} px" in line for name, r in radii.items())
    assert len(warnings_of(udf)) == mask.all()


@pytest.mark.parametrize(
    ("udf", "mask", "name"),
    [
        (
            VirtualDetectorUDF("rect", x=3, y=2, width=5, height=20),
            rectangular(3, 2, 4, 19, *SIG[::-1]),
            "rect",
        ),
        (VirtualDetectorUDF(np.eye(12, 16, dtype=bool)), np.eye(12, 16), "mask"),
        (CoMUDF(r=5, ri=2), ring(8, 6, *SIG[::-1], 5, 2), "ring"),
        (FEMUDF(rad_in=2, rad_out=4), ring(8, 6, *SIG[::-1], 4, 2), "ring"),
    ],
)
def test_other_detectors(udf, mask, name):
    (line,) = lines(udf)
    assert line.startswith(name)
    assert covered(line) == np.count_nonzero(mask)
    assert not warnings_of(udf)


def test_centers_are_not_computed():
    """Each frame has its own center: the line has the radius only."""
    centers = da.full((3, 4, 2), 6.0, chunks=(2, 4, 2))
    udf = VirtualDetectorUDF("disk", r=3, centers=centers)
    assert lines(CoMUDF(r=3, centers=centers)) == ["disk, r = 3 px, each frame has its own center"]
    with raise_if_dask_computes():
        assert lines(udf) == ["disk, r = 3 px, each frame has its own center"]
        assert not lines(CoMUDF(r=da.from_array(3.0)))


@pytest.mark.parametrize(
    ("udf", "note"),
    [
        (
            VirtualDetectorUDF("disk", r=5, center="middle"),
            "r=5 is in pixels: for mrad, write r='5 mrad'",
        ),
        (
            VirtualDetectorUDF("ring", ri=2, ro=5, center="middle"),
            "ri=2 and ro=5 are in pixels: for mrad, write ri='2 mrad', ro='5 mrad'",
        ),
    ],
)
def test_numbers_without_a_unit(udf, note):
    """They are in pixels: `explain` says so where axes have a unit, and only there."""
    assert lines(udf, "note", axes=axes()) == [note]
    assert not lines(udf, "note")
    assert not lines(udf, "note", axes=axes(unit=None))
    assert not warnings_of(udf, axes=axes())


@pytest.mark.parametrize(
    ("udf", "cut"),
    [
        (VirtualDetectorUDF("disk", r=5), False),
        (VirtualDetectorUDF("disk", r=6), True),  # the middle of 12 pixels is pixel 6
        (VirtualDetectorUDF("disk", r=math.inf), False),
        (VirtualDetectorUDF("rect", x=0, y=0, width=16, height=12), False),
        (VirtualDetectorUDF("rect", x=0, y=0, width=17, height=12), True),
        (CoMUDF(r=8), True),
    ],
)
def test_detectors_beyond_the_edge(udf, cut):
    notes = [note for note in lines(udf, "note") if "beyond the edge of the frame" in note]
    assert len(notes) == cut


def test_a_disk_over_all_pixels_warns():
    (text,) = warnings_of(VirtualDetectorUDF("disk", r=50), axes=axes())
    assert "r='50 mrad'" in text
    assert not warnings_of(VirtualDetectorUDF("disk", r=math.inf), axes=axes())
    assert not warnings_of(VirtualDetectorUDF(np.ones(SIG, bool)))


MERGED = da.ones((6, 4, 3, 3), chunks=(1, 4, 3, 3))


class Chained(ud.UDF):
    def get_result_buffers(self):
        return {
            "each": self.buffer(kind="nav", dtype="float64"),
            "total": self.buffer(kind="single", dtype="float64"),
        }

    def process_tile(self, tile):
        self.results.each += tile.sum(axis=(1, 2))
        self.results.total += tile.sum()

    def merge(self, dest, src):
        np.copyto(dest.each, src.each)
        dest.total += src.total


class Tree(Chained):
    merge_assigns_nav = True


def test_a_chain_is_explained():
    (note,) = ud.explain(MERGED, Chained()).notes
    assert note.startswith("Chained: merges run one after another")
    assert "dest.each[:] = src.each" in note
    assert "merge_assigns_nav = True" in note


@pytest.mark.parametrize("udf", [Tree(), RowsMerge(), SumUDF(), CoMUDF(cy=1, cx=1)])
def test_no_note_where_nothing_is_to_be_done(udf):
    assert not ud.explain(MERGED, udf).notes


def test_the_advice_is_true():
    """Who follows it gets equal results from fewer tasks."""
    before, after = ud.run_udf(MERGED, Chained()), ud.run_udf(MERGED, Tree())
    assert after.explain().n_tasks < before.explain().n_tasks
    for name in before:
        assert (before[name].compute() == after[name].compute()).all()
