"""Tasks that end their worker, or fill its memory, on a cluster of two processes."""

import re

import dask.array as da
import pytest

import udfdask as ud
from stopping_udfs import DATA_CHUNKS, SHAPE, Exits
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
