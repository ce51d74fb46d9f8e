"""A cluster of three processes, one of which carries the tag of a CUDA device."""

import pytest

from task_record import TaskRecord, take


@pytest.fixture(scope="module")
def mixed():
    distributed = pytest.importorskip("distributed", reason="distributed is an extra")
    options = {"nthreads": 1, "dashboard": False}
    spec = {
        "cuda-0": {"cls": distributed.Nanny, "options": options | {"resources": {"CUDA": 1}}},
        **{f"cpu-{k}": {"cls": distributed.Nanny, "options": options} for k in range(2)},
    }
    scheduler = {"cls": distributed.Scheduler, "options": {"port": 0, "dashboard_address": ":0"}}
    with (
        distributed.SpecCluster(workers=spec, scheduler=scheduler, silence_logs=30) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        client.wait_for_workers(3)
        client.register_plugin(TaskRecord())
        yield client


@pytest.fixture
def recorded(mixed):
    """A function that returns the tasks of the cluster since the test began."""
    mixed.run_on_scheduler(take)
    return lambda: mixed.run_on_scheduler(take)
