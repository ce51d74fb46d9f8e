"""A task that ends its process, on a cluster of two: the error names UDFs and chunk."""

import os
import re

import dask.array as da
import pytest

import udfdask as ud
from udf_zoo import Rows
from udfdask.udfs import SumUDF

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.full

# without retries, dask blames any of the tasks that the worker had
CHUNK = r"on chunk \(\d, \d\), navigation \[\d:\d, \d:\d\]"


class Exits(Rows):
    """Ends its process at one position of the scan."""

    def process_frame(self, frame):
        if tuple(self.meta.coordinates[0]) == (3, 1):
            os._exit(3)


RUNS = [
    lambda x, udfs, **options: ud.compute(*ud.run_udf(x, udfs), **options),
    lambda x, udfs, **options: list(ud.run_udf_iter(x, udfs, **options)),
]


@pytest.mark.parametrize("run", RUNS, ids=["compute", "iterate"])
def test_a_task_ends_its_process(run):
    x = da.ones((4, 4, 2, 2), chunks=2)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        # A nanny gives up on a worker that ends while it starts: four ends in a row may never come.
        cluster.scheduler.allowed_failures = 0
        with pytest.raises(distributed.KilledWorker) as found:
            run(x, [Exits(), SumUDF()], scheduler=client)
    assert re.search(rf"Exits and SumUDF {CHUNK}", "\n".join(found.value.__notes__))
