"""What a changed run takes from a cache: each partial result that is the same."""

import numpy as np
import pytest

import udf_zoo as zoo
import udfdask as ud
from cache_cases import SHAPE, LooksAround, assert_equal, computed, data, loads, mask, without_cache
from counting import counts, note
from neighborhood_udfs import PartitionsUDF, WindowsUDF
from udfdask.io import with_sync_offset
from udfdask.masks import MaskContainer
from udfdask.udfs import ApplyMasksUDF, CoMUDF, PickUDF, StdDevUDF, SumSigUDF, SumUDF

SOURCE = """
import udfdask as ud
from counting import note

class Peak(ud.UDF):
    def get_result_buffers(self):
        return {"peak": self.buffer("nav", dtype="float64")}

    def process_frame(self, frame):
        note(self.params.folder, "Peak")
        self.results.peak[:] = frame.max()

class Floor(ud.UDF):
    def get_result_buffers(self):
        return {"floor": self.buffer("sig", dtype="float64")}

    def process_frame(self, frame):
        note(self.params.folder, "Floor")
        self.results.floor += frame.min()

    def merge(self, dest, src):
        dest.floor += src.floor
"""


def test_one_changed_line_recomputes_that_udf_alone(cache, folder, tmp_path):
    def run(source):
        space = {"__name__": "own"}
        exec(source, space)
        udfs = [space["Peak"](folder=folder), SumUDF(), space["Floor"](folder=folder)]
        return [ud.run_udf(data(tmp_path), udf) for udf in udfs]

    def called(source):
        expected = without_cache(*run(source))
        counts(folder)
        assert_equal(computed(*run(source)), expected)
        return counts(folder)

    assert called(SOURCE) == {"Peak": 20, "Floor": 20}
    assert called(SOURCE) == {}
    changed = SOURCE.replace("= frame.max()", "= frame.max() + 1")
    assert called(changed) == {"Peak": 20}
    loads(tmp_path)
    assert called(SOURCE) == {}
    assert called(SOURCE.replace("+= frame.min()", "+= 2 * frame.min()")) == {"Floor": 20}
    assert called(changed.replace('note(self.params.folder, "Peak")', "pass")) == {}


def test_a_new_run_computes_its_udf_alone(cache, folder, tmp_path):
    class Calls(ud.UDF):
        def get_result_buffers(self):
            return {"first": self.buffer("nav", dtype="int64")}

        def process_tile(self, tile):
            note(self.params.folder, "first")
            self.results.first[:] = tile[:, 0, 0]

    computed(*ud.run_udf(data(tmp_path), [Calls(folder=folder), zoo.Chain()]))
    assert counts(folder)
    udfs = [Calls(folder=folder), zoo.Chain()]
    both = [ud.run_udf(data(tmp_path), zoo.TileTree()), *ud.run_udf(data(tmp_path), udfs)]
    expected = without_cache(*both)
    counts(folder)
    assert_equal(computed(*both), expected)
    assert not counts(folder)


SMALL = mask(slice(0, 2), (3, 0))
LARGE = mask(slice(0, 3), (3, 0))


class MaskOfTile(ud.UDF):
    """Uses the signal part of its position, and the scan positions of its own frames."""

    def get_result_buffers(self):
        return {"product": self.buffer("nav", dtype="float64"), "n": self.buffer("single")}

    def process_tile(self, tile):
        position = self.meta.slice
        masks = MaskContainer([lambda: np.arange(12.0).reshape(3, 4)]).get(position)
        part = position.get(np.arange(12.0).reshape(3, 4), sig_only=True)
        product = tile.reshape(len(tile), -1) @ masks
        self.results.product += product[:, 0] + (tile * part).sum(axis=(1, 2))
        self.results.n += self.meta.coordinates.sum() + len(position.shape)

    def merge(self, dest, src):
        dest.product[:] = src.product
        dest.n += src.n


@pytest.mark.parametrize(
    "udfs",
    [
        [MaskOfTile()],
        [SumUDF()],
        [SumSigUDF(), CoMUDF(), StdDevUDF()],
        [ApplyMasksUDF(mask_factories=[lambda: np.ones(SHAPE[2:])])],
        [zoo.Chain(), zoo.AssigningTree(), zoo.MergeAllNav(), zoo.RowsMerge()],
    ],
)
def test_a_larger_roi_loads_the_new_chunks_only(udfs, cache, tmp_path):
    def run(roi):
        return ud.run_udf(data(tmp_path), udfs, roi=roi)

    for roi, n_loads in [(SMALL, 7), (LARGE, 3), (None, 3), (SMALL, 0), (mask((0, 0)), 1)]:
        expected = without_cache(*run(roi))
        loads(tmp_path)
        assert_equal(computed(*run(roi)), expected)
        # the chunk at (3, 0) is not complete, so the whole scan loads it again
        assert sum(loads(tmp_path).values()) == n_loads


LOOKS = "slice tiling_scheme cursor shared own preprocess sometimes copy".split()


@pytest.mark.parametrize("how", [*LOOKS, "deep copy"])
def test_a_udf_that_looks_around_is_computed_for_each_roi(how, cache, tmp_path):
    for roi in (mask((0, 0), (0, 1)), SMALL, LARGE, None, SMALL):
        run = ud.run_udf(data(tmp_path), [LooksAround(how=how), SumUDF()], roi=roi)
        expected = without_cache(*run)
        loads(tmp_path)
        assert_equal(computed(*run), expected)
        assert_equal(computed(*run), expected)
    assert not loads(tmp_path)


class TileLengths(ud.UDF):
    def get_result_buffers(self):
        return {"n": self.buffer("nav", dtype="int64")}

    def process_tile(self, tile):
        self.results.n[:] = len(tile)


AROUND = {
    "whole region": [[PickUDF(), SumSigUDF()]],
    "tiles that others cut": [[TileLengths()], [TileLengths(), zoo.Contiguous()]],
    "windows": [[WindowsUDF(1, outside=False), WindowsUDF(1)]],
    "windows of partitions": [[PartitionsUDF(1, outside=False), PartitionsUDF(1)]],
}
"""Lists of UDFs whose results depend on more than their own frames."""


@pytest.mark.parametrize("lists", AROUND.values(), ids=AROUND)
def test_what_depends_on_the_region_is_computed_for_each(lists, cache, tmp_path):
    rois = (None, mask((slice(0, 2), slice(0, 2))), mask(slice(0, 2)), SMALL, LARGE)
    for udfs in lists:
        for roi in (*rois, *reversed(rois)):
            run = ud.run_udf(data(tmp_path, chunks=(2, 2, 3, 4)), udfs, roi=roi)
            assert_equal(computed(*run), without_cache(*run))


@pytest.mark.filterwarnings("ignore:the array was made with sync_offset")
@pytest.mark.parametrize("backwards", [False, True])
def test_windows_among_other_frames_are_computed(backwards, cache, tmp_path):
    opened = with_sync_offset(data(tmp_path), sync_offset=-3)
    runs = [
        ud.run_udf(opened, [WindowsUDF(1), SumUDF()]),
        ud.run_udf(opened.array, [WindowsUDF(1), SumUDF()], roi=opened.present),
    ]
    for run in reversed(runs) if backwards else runs:
        assert_equal(computed(*run), without_cache(*run))
    assert_equal(computed(*runs[0], *runs[1]), without_cache(*runs[0], *runs[1]))
