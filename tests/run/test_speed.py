"""`explain(measure=True)` runs a few chunks, and says if threads wait for each other."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask.run.speed import Speed
from udfdask.udfs import SumUDF

ONE = {"nbytes": 1 << 26, "n_chunks": 64, "alone": 0.5, "threads": 4}


class Peaks(ud.UDF):
    def get_result_buffers(self):
        return {"peak": self.buffer(kind="nav")}

    def process_frame(self, frame):
        self.results.peak[:] = frame.max()


@pytest.mark.parametrize(
    ("together", "busy", "keeps_lock"),
    [
        (2.0, 1.0, True),
        (0.55, 3.6, False),  # threads help
        (2.0, 3.9, False),  # all processors wait for memory
        (2.0, 0.2, False),  # the disk is slow
    ],
)
def test_the_lock_is_blamed_if_one_processor_is_busy(together, busy, keeps_lock):
    speed = Speed(**ONE, together=together, busy=busy)
    assert speed.keeps_lock is keeps_lock
    advice = speed.advice("Peaks")
    assert (advice is not None) is keeps_lock
    assert speed.advice("") is None  # ready-made UDFs do not keep it


def test_one_thread_waits_for_no_other():
    assert not Speed(**{**ONE, "threads": 1}, together=0.5, busy=1.0).keeps_lock


@pytest.mark.parametrize("udf", [Peaks(), [SumUDF(), Peaks()], {"peaks": Peaks()}])
def test_only_the_first_chunks_are_loaded(udf, monkeypatch):
    monkeypatch.setattr("udfdask.run.speed.CPU_COUNT", 2)
    loaded = []

    def load(block, block_info=None):
        loaded.append(block_info[0]["chunk-location"][:2])
        return block

    x = da.ones((6, 4, 3, 3), chunks=(1, 4, 3, 3)).map_blocks(load, meta=np.empty((0,) * 4))
    roi = np.ones((6, 4), bool)
    roi[0] = False
    before = ud.explain(x, udf, roi=roi)
    assert not loaded
    measured = ud.explain(x, udf, roi=roi, measure=True)
    assert set(loaded) == {(1, 0), (2, 0)}
    assert measured.lines[: len(before.lines)] == before.lines
    assert measured.lines[len(before.lines)][0] == "speed"
    assert measured.n_tasks == before.n_tasks
