"""What tests of several files share: a cluster takes seconds to start."""

import pytest


@pytest.fixture(scope="session")
def client():
    """A client of a cluster of two processes with one thread each, not dask's default one."""
    distributed = pytest.importorskip("distributed", reason="distributed is an extra")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as made,
    ):
        yield made
