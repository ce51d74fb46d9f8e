"""A run on a cluster without workers says that it waits, and goes on when a worker comes."""

import logging
import threading

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask.scheduling.workers import losses
from udfdask.udfs import SumUDF

distributed = pytest.importorskip("distributed", reason="distributed is an extra")

pytestmark = pytest.mark.full


class StartsWorker(logging.Handler):
    """Starts a worker when the note is logged."""

    def __init__(self, cluster):
        super().__init__()
        self.cluster, self.messages = cluster, []

    def emit(self, record):
        self.messages.append(record.getMessage())
        self.cluster.scale(1)


@pytest.mark.parametrize("progress", [True, False])
def test_a_note_then_the_results(monkeypatch, progress):
    monkeypatch.setattr(losses, "PAUSE", 0.01)
    options = {"processes": False, "dashboard_address": ":0", "threads_per_worker": 1}
    result = ud.run_udf(da.ones((4, 3, 2, 2), chunks=(1, 3, 2, 2)), SumUDF())
    with (
        distributed.LocalCluster(n_workers=0, **options) as cluster,
        distributed.Client(cluster),
    ):
        handler = StartsWorker(cluster)
        losses.LOG.addHandler(handler)
        late = threading.Timer(30, cluster.scale, (1,))  # so that the test ends without the note
        late.start()
        try:
            found = result.compute(progress=progress)
            again = result.compute(progress=progress)
        finally:
            late.cancel()
            losses.LOG.removeHandler(handler)
    np.testing.assert_array_equal(found["intensity"], np.full((2, 2), 12.0))
    np.testing.assert_array_equal(again["intensity"], found["intensity"])
    (message,) = handler.messages
    assert message.startswith("the cluster has no workers: the run waits for one.")
