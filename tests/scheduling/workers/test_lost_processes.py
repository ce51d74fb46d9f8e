"""Tasks that end their worker, or fill its memory, on a cluster of two processes."""

import re
from pathlib import Path

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import LATE
from stopping_udfs import DATA_CHUNKS, SHAPE, Exits, FillsMemory
from udfdask.udfs import SumUDF

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.full

# without retries, dask blames any of the tasks that the worker had
CHUNK = r"on chunk \(\d, \d\), navigation \[\d:\d, \d:\d\]"


@pytest.fixture
def x():
    return da.ones(SHAPE, chunks=DATA_CHUNKS)


@pytest.fixture
def small():
    """A client of two processes with one thread and 500 MB each."""
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit="500 MB",
            dashboard_address=":0",
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def by_compute(x, udfs, client, **options):
    return ud.compute(*ud.run_udf(x, udfs), scheduler=client, **options)


def by_iterating(x, udfs, client, **options):
    *_, last = ud.run_udf_iter(x, udfs, scheduler=client, **options)
    return last.buffers


RUNS = [by_compute, by_iterating]


def notes_of(error):
    return "\n".join(error.value.__notes__)


@pytest.mark.parametrize("run", RUNS)
def test_a_task_ends_its_process(run, x, small):
    # A nanny gives up on a worker that ends while it starts: four ends in a row may never come.
    small.cluster.scheduler.allowed_failures = 0
    with pytest.raises(distributed.KilledWorker) as found:
        run(x, [Exits(), SumUDF()], small)
    note = notes_of(found)
    assert re.search(rf"Exits and SumUDF {CHUNK}", note)


def test_a_worker_fills_its_memory_once(x, small, tmp_path):
    """Its nanny restarts it in the middle of the run, which goes on."""
    udfs = [FillsMemory(folder=str(tmp_path)), SumUDF()]
    sums, total = by_compute(x, udfs, small)
    assert (Path(tmp_path) / "filled").exists()
    assert small.get_events("worker-restart-memory")
    np.testing.assert_array_equal(sums["sums"], np.full((4, 4), 4.0))
    np.testing.assert_array_equal(total["intensity"], np.full((2, 2), 16.0))


class Pictures(ud.UDF):
    """A picture of 64 KiB for each frame."""

    def get_result_buffers(self):
        return {"picture": self.buffer("nav", extra_shape=(128, 64), dtype="float64")}

    def process_frame(self, frame):
        self.results.picture[:] = frame.sum()


def test_nav_results_stay_on_the_workers(client):
    x = da.ones((16, 8, 2, 2), chunks=(2, 8, 2, 2))
    result = ud.run_udf(x, Pictures())
    received = []
    gather = client.gather

    def counted(futures, *args, **kwargs):
        values = gather(futures, *args, **kwargs)
        received.append(values)
        return values

    client.gather = counted
    try:
        (kept,) = ud.persist(result, scheduler=client)
        blocks = distributed.futures_of(kept, client=client)
        assert len(blocks) >= 8
        with client.as_current():
            distributed.wait(blocks, timeout=LATE)
        assert not received
        held = sum(client.nbytes(summary=False).values())
        assert held >= 16 * 8 * 128 * 64 * 8  # 8 MiB, all of it on the workers
        one = kept["picture"][3, 4].compute(scheduler=client)
    finally:
        del client.gather
    np.testing.assert_array_equal(one, np.full((128, 64), 4.0))
