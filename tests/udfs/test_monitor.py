"""AutoUDF(monitor=True): the result of the last frame, for live plots."""

import contextlib

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import udfdask as ud
from udfdask.testing.strategies import chunkings, rois
from udfdask.udfs import AutoUDF

pytestmark = pytest.mark.filterwarnings("ignore:a task takes:udfdask.UDFWarning")
SYNC = {"scheduler": "synchronous"}
DATA = np.random.default_rng(1).integers(1, 50, (4, 6, 5, 4)).astype(np.float32)


@given(st.data())
def test_it_is_the_last_row(source):
    roi, chunks = source.draw(rois((4, 6))), source.draw(chunkings(DATA.shape))
    x = da.from_array(DATA, chunks=chunks)
    udf = AutoUDF(lambda frame: frame.sum(axis=0), monitor=True)
    done = ud.run_udf(x, udf, roi=roi).compute(**SYNC)
    plain = ud.run_udf(x, AutoUDF(lambda frame: frame.sum(axis=0)), roi=roi).compute(**SYNC)
    np.testing.assert_array_equal(done["result"], plain["result"])
    rows = done.raw["result"]
    np.testing.assert_array_equal(done["monitor"], rows[-1] if len(rows) else np.zeros(4))
    assert done["monitor"].dtype == done["result"].dtype


def test_while_the_run_goes_on():
    x = da.from_array(DATA, chunks=(1, 3, 5, 4))
    seen = 0
    for snapshot in ud.run_udf_iter(x, AutoUDF(np.max, monitor=True), **SYNC):
        result = snapshot.buffers[0]
        last = np.flatnonzero(snapshot.damage)[-1]
        assert result["monitor"] == DATA.max(axis=(2, 3)).reshape(-1)[last]
        seen += 1
    assert seen > 1


@pytest.mark.parametrize("roi", [None, np.zeros((4, 6), bool)], ids=["all", "no frame"])
def test_results_of_any_shape(roi):
    def above(frame):
        return frame[frame > 25]

    x = da.from_array(DATA, chunks=(2, 3, 5, 4))
    with contextlib.nullcontext() if roi is None else pytest.warns(ud.UDFWarning, match="no pos"):
        lazy = ud.run_udf(x, AutoUDF(above, ragged=True, monitor=True), roi=roi)
    found = lazy.compute(**SYNC)["monitor"]
    if roi is None:
        np.testing.assert_array_equal(found[()], above(DATA[-1, -1]))
    else:
        assert found[()] is None


def test_without_it_nothing_changes():
    """The run without a monitor gathers nothing, and has one result."""
    x = da.from_array(DATA, chunks=(2, 3, 5, 4))
    plain = ud.run_udf(x, AutoUDF(np.sum))
    assert list(plain) == ["result"]
    watched = ud.run_udf(x, AutoUDF(np.sum, monitor=True))
    assert len(plain["result"].dask) < len(watched["result"].dask)
    assert plain["result"].name == ud.run_udf(x, AutoUDF(np.sum, monitor=False))["result"].name


def test_a_subclass_may_have_its_own_results():
    class Doubled(AutoUDF):
        def get_results(self):
            return {**super().get_results(), "result": 2 * self.results.result}

    x = da.from_array(DATA, chunks=(2, 3, 5, 4))
    for monitor in (False, True):
        done = ud.run_udf(x, Doubled(np.sum, monitor=monitor)).compute(**SYNC)
        np.testing.assert_array_equal(done["result"], 2 * DATA.sum(axis=(2, 3)))
        assert ("monitor" in done) == monitor


def test_a_mistake():
    with pytest.raises(ud.ArgumentTypeError, match="monitor must be True or False, not 'result'"):
        AutoUDF(np.sum, monitor="result")
