"""Whatever happens to a run or to who is told about it, both end as they should."""

from concurrent.futures import ThreadPoolExecutor

import dask.array as da
import numpy as np
import pytest

import failing_udfs
import udfdask as ud
from making import wait_until
from progress_reporters import Fails, Interrupts, Kept
from udf_zoo import Rows
from udfdask.testing import raise_if_dask_computes

pytest.importorskip("distributed", reason="distributed is an extra")


BROKEN = failing_udfs.Fails("process_frame", row=3)


@pytest.fixture
def x():
    return da.ones((4, 6, 8, 8), chunks=(2, 3, 8, 8))


def plugins(client):
    return client.run_on_scheduler(
        lambda dask_scheduler: [n for n in dask_scheduler.plugins if n.startswith("udfdask")]
    )


def test_a_run_that_fails(x, options):
    kept = Kept()
    with pytest.raises(failing_udfs.OwnError):
        ud.compute(ud.run_udf(x, BROKEN), progress=kept, **options)
    assert kept.last.status == "failed"
    assert kept.last.num_frames_complete < 24
    if hasattr(options["scheduler"], "run_on_scheduler"):
        assert not plugins(options["scheduler"])


def test_persisting_what_fails(x, client):
    """It is lazy still: whoever reads it gets the exception."""
    kept = Kept()
    (res,) = ud.persist(ud.run_udf(x, BROKEN), progress=kept, scheduler=client)
    assert kept.last.status == "failed"
    with pytest.raises(failing_udfs.OwnError):
        res.compute(scheduler=client)
    assert not plugins(client)


def test_ctrl_c(x):
    kept = Kept()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()  # has its thread: interrupted in its start, Python never ends
        with pytest.raises(KeyboardInterrupt):
            ud.compute(ud.run_udf(x, Interrupts()), progress=kept, scheduler="threads", pool=pool)
    assert kept.last.status == "cancelled"


def test_a_cluster_forgets_what_was_interrupted(x, client):
    held = client.run_on_scheduler(lambda dask_scheduler: set(dask_scheduler.tasks))
    fails = Fails("start", KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt) as caught:
        ud.compute(ud.run_udf(x, Rows()), progress=fails, scheduler=client)

    def left(dask_scheduler):
        return [key for key in dask_scheduler.tasks if key not in held]

    wait_until(lambda: not client.run_on_scheduler(left))
    assert caught.traceback  # which is kept, and must not keep the futures
    assert not plugins(client)


@pytest.mark.parametrize("event", ["start", "update", "end"])
def test_a_reporter_that_fails_loses_no_run(x, options, event):
    fails = Fails(event, RuntimeError("disk full"))
    told = rf"passed as progress, failed to {event}: RuntimeError: disk full; the run goes on"
    with pytest.warns(ud.UDFWarning, match=told) as caught:
        (res,) = ud.compute(ud.run_udf(x, Rows()), progress=fails, **options)
    np.testing.assert_array_equal(res["sums"], np.full((4, 6), 64.0))
    assert len(caught) == 1
    assert fails.called[-1] == ("end", "finished")
    assert [name for name, _ in fails.called].count(event) == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (3, "progress must be True for a bar, .* got 3"),
        ("yes", "got 'yes'"),
        (Kept, "the methods start, update and end; got <class"),
        (object(), "the methods start, update and end; got <object"),
    ],
)
def test_what_nobody_can_tell(x, wrong, message):
    res = ud.run_udf(x, Rows())
    with raise_if_dask_computes():
        for ask in (ud.compute, ud.persist):
            with pytest.raises(ud.ArgumentTypeError, match=message):
                ask(res, progress=wrong)
        with pytest.raises(ud.ArgumentTypeError, match=message):
            res.compute(progress=wrong)


def test_a_function_is_told_everything(x):
    told = []
    ud.run_udf(x, Rows()).compute(progress=told.append, scheduler="synchronous")
    assert [state.num_frames_complete for state in told] == [0, 6, 12, 18, 24, 24]
    assert [state.status for state in told] == ["running"] * 5 + ["finished"]


class TestBar:
    def test_frames_and_bytes(self, x, capsys):
        ud.run_udf(x, Rows()).compute(progress=True, scheduler="synchronous")
        shown = capsys.readouterr()
        last = shown.err.split("\r")[-1]
        assert "100%" in last
        assert "24.0/24.0" in last
        assert "12.00 kiB of 12.00 kiB" in last
        assert last.endswith("\n")
        assert not shown.out

    def test_it_stays_where_a_run_failed(self, x, options, capsys):
        with pytest.raises(failing_udfs.OwnError):
            ud.compute(ud.run_udf(x, BROKEN), progress=True, **options)
        last = capsys.readouterr().err.split("\r")[-1]
        assert "/24.0" in last
        assert "24.0/24.0" not in last
        assert last.endswith("\n")

    def test_there_is_none_with_nothing_to_count(self, x, capsys):
        ud.compute(x.sum(), progress=True)
        ud.run_udf(x, Rows(), roi=np.zeros((4, 6), bool)).compute(progress=True)
        assert not capsys.readouterr().err
