"""A signal to a whole process group, as Stop in a notebook sends it, ends workers."""

import os
import signal
import time

import dask.array as da
import pytest

import udfdask as ud
from udfdask.udfs import SumUDF

distributed = pytest.importorskip("distributed", reason="distributed is an extra")

OPTIONS = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
RESULT = ud.run_udf(da.ones((4, 3, 4, 4), chunks=(1, 3, 4, 4)), SumUDF())
DOORS = {
    "compute": lambda client: ud.compute(RESULT, scheduler=client),
    "persist": lambda client: ud.persist(RESULT, scheduler=client),
    "run_udf_iter": lambda client: list(
        ud.run_udf_iter(da.ones((4, 3, 4, 4)), SumUDF(), scheduler=client)
    ),
}


def interrupt(client):
    for pid in client.run(os.getpid).values():
        os.kill(pid, signal.SIGINT)


def check_runs(client):
    assert RESULT.compute(scheduler=client)["intensity"].sum() == 4 * 3 * 16


@pytest.mark.full
def test_all_workers_have_ended():
    with (
        distributed.LocalCluster(n_workers=2, **OPTIONS) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        check_runs(client)
        interrupt(client)
        while any(worker.status.name == "running" for worker in cluster.workers.values()):
            time.sleep(0.05)
        for door in DOORS.values():
            with pytest.raises(ud.ArgumentValueError):
                door(client)
        cluster.scale(0)
        while cluster.workers:
            time.sleep(0.05)
        cluster.scale(2)
        check_runs(client)


@pytest.mark.full
def test_workers_that_have_not_started_yet():
    with (
        distributed.LocalCluster(n_workers=0, **OPTIONS) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        cluster.scale(1)
        check_runs(client)


@pytest.mark.full
def test_workers_that_ignore_interrupts():
    preload = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
    with (
        distributed.LocalCluster(n_workers=1, preload=preload, **OPTIONS) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        pids = client.run(os.getpid)
        interrupt(client)
        check_runs(client)
        assert client.run(os.getpid) == pids
