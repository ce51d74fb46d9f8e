"""What tests of several files share: a cluster and processes take seconds to start."""

import os
import signal
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

pytest_plugins = ["suites", "array_kinds", "backend_fixture", "damaging", "kernel_compiler"]
os.environ["MPLBACKEND"] = "agg"  # no windows, here and in processes that tests start
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it


@pytest.fixture
def warns_of_few_data(monkeypatch):
    """Plans warn about frames in many signal chunks, however few data there are."""
    from udfdask.explanation import costs

    monkeypatch.setattr(costs, "LITTLE_DATA", 0)


def how_long(fixture_name, config):
    """Keep processes for all tests only where many tests use them: each takes 120 to 190 MB."""
    from suites import is_full  # pytest has to load this plugin first

    return "session" if is_full(config) else "module"


@pytest.fixture(scope=how_long)
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


@pytest.fixture(scope=how_long)
def frisky():
    """A client of a Frisky cluster of two processes with one thread each."""
    import dask

    frisky = pytest.importorskip("frisky", reason="frisky is in the extra test")
    frisky.cluster._WORKER_START_TIMEOUT = 60  # Frisky waits 10 s for what a busy machine starts
    how = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "silence_summary": True}
    how["dashboard_address"] = "127.0.0.1:0"
    with frisky.LocalCluster(**how) as cluster:
        with dask.config.set(scheduler="synchronous"):  # otherwise it becomes the default one
            made = cluster.get_client()
        with made:
            yield made


@pytest.fixture(scope=how_long)
def pool():
    """Two processes, started anew as dask starts its own.

    A fork copies whatever lock another thread holds at that moment, and never gets it back.
    """
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        yield processes


@pytest.fixture(params=["synchronous", "threads", "processes", "distributed", "frisky"])
def options(request):
    """Options of `compute` for each scheduler."""
    if request.param == "distributed":
        return {"scheduler": request.getfixturevalue("client")}
    if request.param == "frisky":
        return {"scheduler": request.getfixturevalue("frisky")}
    if request.param == "processes":
        return {"scheduler": "processes", "pool": request.getfixturevalue("pool")}
    return {"scheduler": request.param, "num_workers": 2}


@pytest.fixture
def folder(tmp_path):
    """Where `counting.note` leaves files."""
    (tmp_path / "notes").mkdir()
    return str(tmp_path / "notes")


@pytest.fixture
def cache(tmp_path):
    """A cache for all computations of a test."""
    import udfdask as ud

    with ud.cache(tmp_path / "cache", limit="1 GB"):
        yield tmp_path / "cache"
