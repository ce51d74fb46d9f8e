"""Clusters of Frisky: dask's default scheduler there, what it cannot do, and lost workers."""

import os
import re
import signal
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from cuda_udfs import Cuda
from failing_udfs import Fails, OwnError
from progress_reporters import Kept
from udf_zoo import Rows
from udfdask.errors import DeviceError
from udfdask.udfs import SumSigUDF, SumUDF

frisky = pytest.importorskip("frisky", reason="frisky is in the extra test")

DATA = np.arange(4 * 6 * 8 * 9).reshape(4, 6, 8, 9)

CALLS = {
    "compute": lambda x, udf, **how: ud.compute(ud.run_udf(x, udf), **how)[0],
    "persist": lambda x, udf, **how: ud.persist(ud.run_udf(x, udf), **how)[0],
    "run_udf_iter": lambda x, udf, **how: list(ud.run_udf_iter(x, udf, **how))[-1].buffers[0],
}
BY_CALL = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@pytest.fixture
def x():
    return da.from_array(DATA, chunks=(2, 3, 8, 9))


@pytest.fixture(scope="module")
def mortal():
    """A cluster of three processes, whose client is dask's default scheduler."""
    frisky.cluster._WORKER_START_TIMEOUT = 60
    with (
        frisky.LocalCluster(
            n_workers=3, processes=True, silence_summary=True, dashboard_address="127.0.0.1:0"
        ) as cluster,
        cluster.get_client(),
    ):
        yield cluster


class EndsOnce(Rows):
    """Ends the process of the first chunk, once."""

    def process_frame(self, frame):
        try:
            Path(self.params.file).touch(exist_ok=False)
        except FileExistsError:
            super().process_frame(frame)
        else:
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.full
@pytest.mark.parametrize("call", ["compute", "run_udf_iter"])
def test_an_error_says_where(x, mortal, call):
    with pytest.raises(OwnError) as caught:
        CALLS[call](x, Fails("process_frame", row=3))
    (note,) = caught.value.__notes__
    assert re.match(r"raised in Fails.process_frame .*, in chunk \(1, \d\)$", note)


@pytest.mark.full
@pytest.mark.parametrize("call", ["compute", "run_udf_iter"])
def test_a_worker_ends(x, mortal, tmp_path, call):
    result = CALLS[call](x, EndsOnce(file=str(tmp_path / "ended")))
    np.testing.assert_array_equal(result["sums"], DATA.sum(axis=(2, 3)))
    assert (tmp_path / "ended").exists()


@pytest.mark.full
def test_results_stay_on_the_workers(x, mortal):
    kept = Kept()
    total, sums = ud.persist(*ud.run_udf(x, [SumUDF(), SumSigUDF()]), progress=kept)
    kept.assert_finished(24, DATA.nbytes, 4)
    futures = [v for v in total["intensity"].dask.to_dict().values() if type(v) is frisky.Future]
    assert futures
    (later,) = dask.compute(sums["intensity"] + 1)
    np.testing.assert_array_equal(later, DATA.sum(axis=(2, 3)) + 1)
    np.testing.assert_array_equal(ud.compute(total)[0]["intensity"], DATA.sum(axis=(0, 1)))


@BY_CALL
def test_without_workers(x, call):
    with (
        frisky.LocalCluster(
            n_workers=0, silence_summary=True, dashboard_address="127.0.0.1:0"
        ) as cluster,
        cluster.get_client() as client,
        pytest.raises(ud.UDFWarning, match="no workers"),
    ):
        ud.compute(call(x, SumUDF(), scheduler=client), scheduler=client)


@pytest.fixture
def empty():
    """A client of a cluster without workers: nothing may be sent to it."""
    with (
        frisky.LocalCluster(
            n_workers=0, silence_summary=True, dashboard_address="127.0.0.1:0"
        ) as cluster,
        dask.config.set(scheduler="synchronous"),
        cluster.get_client() as client,
    ):
        yield client


@BY_CALL
def test_what_needs_some_workers_is_refused(x, empty, call, tmp_path):
    with pytest.raises(DeviceError):
        call(x, [SumUDF(), Cuda(str(tmp_path))], scheduler=empty)
    with pytest.raises(ud.ArgumentValueError, match="on_workers"):
        call(ud.on_workers(x, "node7"), SumUDF(), scheduler=empty)
    with pytest.raises(ud.ArgumentTypeError, match="retires"):
        call(x, SumUDF(), scheduler=empty, retires=2)


@BY_CALL
@pytest.mark.parametrize("option", [{"resources": {"disk": 1}}, {"workers": "node7"}])
def test_what_is_ignored_is_said(x, empty, call, option):
    with pytest.raises(ud.UDFWarning, match=next(iter(option))):
        call(x, SumUDF(), scheduler=empty, **option)
    with dask.annotate(**option), pytest.raises(ud.UDFWarning):
        call(x, SumUDF(), scheduler=empty)
    with dask.annotate(**option):
        annotated = x + 1
    with pytest.raises(ud.UDFWarning):
        call(annotated, SumUDF(), scheduler=empty)
