"""The laws of a run with shifted frames: one pass, regions, schedulers, records on disk."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from cache_cases import data, loads
from counting import CountedData, counts
from udfdask.corrections import Descan
from udfdask.testing import run_reference
from udfdask.udfs import CoMUDF, StdDevUDF, SumSigUDF, SumUDF

DATA = np.random.default_rng(0).integers(0, 900, (6, 5, 8, 9)).astype("uint16")
SHIFTS = np.random.default_rng(1).uniform(-4, 4, (6, 5, 2))
UDFS = [SumUDF(), SumSigUDF(), CoMUDF(), StdDevUDF()]


class Center(ud.UDF):
    """Keeps the pixel in the center of each frame."""

    def get_preferred_input_dtype(self):
        return self.USE_NATIVE_DTYPE

    def get_result_buffers(self):
        return {"center": self.buffer("nav", dtype=self.meta.input_dtype)}

    def process_frame(self, frame):
        self.results.center[:] = frame[4, 4]


def counted(values, folder, chunks, name):
    """A lazy array, and the folder that notes each time it is loaded."""
    notes = folder / name
    notes.mkdir()
    return da.from_array(CountedData(values, notes), chunks=chunks, meta=values[:0]), notes


@pytest.mark.parametrize("subpixel", [False, True])
@pytest.mark.parametrize("chunks", [(2, 3, 8, 9), (4, 5, 3, 9)])
def test_equal_on_every_scheduler(options, chunks, subpixel):
    x = da.from_array(DATA, chunks=chunks)
    expected = run_reference(DATA, UDFS, descan=Descan(SHIFTS, subpixel=subpixel))
    for shifts in (SHIFTS, da.from_array(SHIFTS, chunks=(3, 2, 1))):
        runs = ud.run_udf(x, UDFS, descan=Descan(shifts, subpixel=subpixel))
        for found, wanted in zip(ud.compute(*runs, **options), expected, strict=True):
            for name in wanted:
                np.testing.assert_allclose(found[name], wanted[name], rtol=1e-5, atol=1e-5)


def brightest(frame):
    """The brightest pixel, relative to the center."""
    return np.array(np.unravel_index(frame.argmax(), frame.shape)) - (4, 4)


def test_own_shifts_frame_by_frame_need_one_pass(tmp_path):
    x, notes = counted(DATA, tmp_path, (2, 3, 8, 9), "data")
    shifts = ud.map_frames(x, brightest, output_shape=(2,), output_dtype="int64")
    total, highest = ud.run_udf(x, [SumUDF(), Center()], descan=shifts)
    assert total.explain().passes == 1
    _, found = ud.compute(total, highest, scheduler="threads")
    assert set(counts(notes).values()) == {1}
    np.testing.assert_array_equal(found["center"], DATA.max(axis=(2, 3)))


def test_own_shifts_from_all_frames_need_two_passes(tmp_path):
    """The field of a center of mass is a result over all frames; blocks do not wait for it."""
    x, notes = counted(DATA, tmp_path, (2, 3, 8, 9), "data")
    centered = ud.run_udf(x, SumSigUDF(), descan=ud.run_udf(x, CoMUDF())["raw_shifts"])
    assert centered.explain().passes == 2
    centered.compute(scheduler="threads")
    assert set(counts(notes).values()) == {2}


def test_chunks_without_selected_frames_need_no_shifts(tmp_path):
    x, notes = counted(DATA, tmp_path, (2, 5, 8, 9), "data")
    shifts, shift_notes = counted(SHIFTS, tmp_path, (2, 5, 2), "shifts")
    roi = np.zeros((6, 5), dtype=bool)
    roi[2:4, 1:3] = True
    found = ud.run_udf(x, SumUDF(), descan=shifts, roi=roi)["intensity"].compute()
    assert list(counts(notes)) == ["load-2-0-0-0"]
    assert list(counts(shift_notes)) == ["load-2-0-0"]
    expected = run_reference(DATA, SumUDF(), descan=SHIFTS, roi=roi)["intensity"]
    np.testing.assert_array_equal(found, expected)


def test_progressive(options):
    x = da.from_array(DATA, chunks=(2, 3, 8, 9))
    expected = run_reference(DATA, UDFS, descan=SHIFTS)
    for shifts in (SHIFTS, da.from_array(SHIFTS, chunks=(3, 2, 1))):
        (*_, last) = ud.run_udf_iter(x, UDFS, descan=shifts, **options)
        for found, wanted in zip(last.buffers, expected, strict=True):
            for name in wanted:
                np.testing.assert_allclose(found[name], wanted[name], rtol=1e-5, atol=1e-5)


def test_a_cache_knows_the_shifts(tmp_path):
    x = data(tmp_path, chunks=(1, 5, 3, 4))
    shifts = np.linspace(-2, 2, 40).reshape((4, 5, 2))
    other = shifts.copy()
    other[0, 0] = 3
    with ud.cache(tmp_path / "cache", limit="1 GB"):
        for given in (None, shifts, other, Descan(shifts, subpixel=True), Descan(shifts, fill=1)):
            ud.run_udf(x, SumUDF(), descan=given).compute(scheduler="threads")
            assert loads(tmp_path)
            ud.run_udf(x, SumUDF(), descan=given).compute(scheduler="threads")
            assert not loads(tmp_path)
