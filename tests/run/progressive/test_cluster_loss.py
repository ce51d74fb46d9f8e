"""A cluster loses its scheduler, its data or a process: distributed's error, no run hangs."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError
from pathlib import Path

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import wait_until
from udf_zoo import Rows
from udfdask.udfs import SumUDF

distributed = pytest.importorskip("distributed")
from distributed.comm import CommClosedError  # noqa: E402

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")]

CLI = [sys.executable, "-m"]
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
QUIET["env"] = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}  # they import this file


class Waits(Rows):
    """Reports that it has started; all frames except the first two wait for a file."""

    def process_frame(self, frame):
        folder = Path(self.params.folder)
        if self.meta.coordinates[0, 0] >= 2:
            (folder / "waits").touch()
            while not (folder / "go").exists():
                time.sleep(0.02)
        super().process_frame(frame)


@pytest.fixture
def processes(tmp_path):
    """A scheduler and a worker of one thread, each a process, and a client."""
    file = tmp_path / "scheduler.json"
    options = ["--host", "127.0.0.1", "--scheduler-file", str(file), "--no-dashboard"]
    scheduler = ["distributed.cli.dask_scheduler", "--port", "0"]
    worker = ["distributed.cli.dask_worker", "--no-nanny", "--nthreads", "1"]
    scheduler = subprocess.Popen([*CLI, *scheduler, *options], **QUIET)
    worker = subprocess.Popen([*CLI, *worker, *options, "--death-timeout", "500"], **QUIET)
    client = None
    try:
        wait_until(lambda: file.exists() and file.stat().st_size)
        client = distributed.Client(scheduler_file=str(file), set_as_default=False, timeout=500)
        client.wait_for_workers(1, timeout=500)
        yield scheduler, worker, client
    finally:
        (tmp_path / "go").touch()
        for process in (scheduler, worker):
            process.kill()
            process.wait()
        if client is not None:
            with contextlib.suppress(Exception):
                client.close(timeout=1)


def kill_when_it_waits(process, folder):
    def kill():
        wait_until((Path(folder) / "waits").exists)
        os.kill(process.pid, 9)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    return thread


def go_through(x, udf, client):
    """Return the error of an iteration, and its cause; the snapshots until then are right."""
    snapshots = []
    with pytest.raises(ud.UDFRunCancelled) as found:
        snapshots.extend(ud.run_udf_iter(x, udf, scheduler=client))
    assert found.value.chunks_merged == len(snapshots)
    return found.value.__cause__


def compute(x, udf, client):
    with pytest.raises((CancelledError, CommClosedError)) as found:
        ud.compute(ud.run_udf(x, udf), scheduler=client)
    return found.value


EIGHT = da.ones((8, 1, 2, 2), chunks=(1, 1, 2, 2))


@pytest.mark.parametrize("run", [go_through, compute])
def test_the_scheduler_dies(run, processes, tmp_path):
    scheduler, _, client = processes
    thread = kill_when_it_waits(scheduler, tmp_path)
    error = run(EIGHT, Waits(folder=str(tmp_path)), client)
    thread.join()
    # the connection can also end while results are on the way
    assert isinstance(error, CommClosedError) or error.reason == "scheduler-connection-lost"


def test_the_scheduler_dies_while_results_are_fetched(processes):
    scheduler, _, client = processes
    fetch = client.gather

    def gather(futures):
        os.kill(scheduler.pid, signal.SIGSTOP)
        threading.Timer(0.5, scheduler.kill).start()
        return fetch(futures)

    client.gather = gather
    assert isinstance(go_through(EIGHT, Rows(), client), CommClosedError)


@pytest.mark.parametrize("run", [go_through, compute])
def test_a_worker_dies_that_held_the_only_data(run, processes, tmp_path):
    _, worker, client = processes
    (data,) = client.scatter([np.ones((8, 1, 2, 2))])
    x = da.from_delayed(data, (8, 1, 2, 2), "float64").rechunk((1, 1, 2, 2))
    thread = kill_when_it_waits(worker, tmp_path)
    error = run(x, Waits(folder=str(tmp_path)), client)
    thread.join()
    assert isinstance(error, CancelledError)


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
