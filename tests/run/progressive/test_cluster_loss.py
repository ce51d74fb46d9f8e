"""A cluster loses its scheduler or its data: the error says so, and keeps its cause."""

import contextlib
import os
import subprocess
import sys
import threading
from concurrent.futures import CancelledError
from pathlib import Path

import dask.array as da
import numpy as np
import pytest

import udfdask as ud

distributed = pytest.importorskip("distributed")

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")]

CLI = [sys.executable, "-m"]
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


class Waits(ud.UDF):
    """Reports that it has started; all frames except the first two wait for a file."""

    def get_result_buffers(self):
        return {"sums": self.buffer("nav", dtype="float64")}

    def process_frame(self, frame):
        import time
        from pathlib import Path

        folder = Path(self.params.folder)
        if self.meta.coordinates[0, 0] >= 2:
            (folder / "waits").touch()
            while not (folder / "go").exists():
                time.sleep(0.02)
        self.results.sums[:] = frame.sum()


@pytest.fixture
def processes(tmp_path):
    """A scheduler and a worker of one thread, each a process, and a client."""
    file = tmp_path / "scheduler.json"
    options = ["--host", "127.0.0.1", "--scheduler-file", str(file), "--no-dashboard"]
    scheduler = subprocess.Popen(
        [*CLI, "distributed.cli.dask_scheduler", "--port", "0", *options], **QUIET
    )
    worker = subprocess.Popen(
        [
            *(*CLI, "distributed.cli.dask_worker", "--no-nanny", "--nthreads", "1"),
            *(*options, "--death-timeout", "500"),
        ],
        **QUIET,
    )
    client = None
    try:
        _wait_until(lambda: file.exists() and file.stat().st_size)
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


def _wait_until(condition):
    event = threading.Event()
    for _ in range(50_000):
        if condition():
            return
        event.wait(0.01)
    raise AssertionError("it took more than 500 s")


def kill_when_it_waits(process, folder):
    """Kill a process as soon as a task waits."""

    def kill():
        _wait_until((Path(folder) / "waits").exists)
        os.kill(process.pid, 9)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    return thread


def go_through(x, udf, client, snapshots):
    for snapshot in ud.run_udf_iter(x, udf, scheduler=client):
        snapshots.append(snapshot)


def compute(x, udf, client, _):
    ud.compute(ud.run_udf(x, udf), scheduler=client)


@pytest.mark.parametrize("run", [go_through, compute])
def test_the_scheduler_dies(run, processes, tmp_path):
    scheduler, _, client = processes
    x = da.ones((8, 1, 2, 2), chunks=(1, 1, 2, 2))
    snapshots = []
    thread = kill_when_it_waits(scheduler, tmp_path)
    with pytest.raises(ud.ClusterError, match=r"connection to the scheduler was lost") as found:
        run(x, Waits(folder=str(tmp_path)), client, snapshots)
    thread.join()
    assert isinstance(found.value.__cause__, CancelledError)
    assert "scheduler-connection-lost" in str(found.value.__cause__)
    if run is go_through:
        assert f"({len(snapshots)} of 8 chunks had arrived)" in str(found.value)


def compute_with_progress(x, udf, client, _):
    ud.compute(ud.run_udf(x, udf), scheduler=client, progress=lambda state: None)


def compute_somewhere(x, udf, client, _):
    ud.compute(ud.run_udf(x, udf), scheduler=client, workers=["node7"])


@pytest.mark.parametrize("status", ["connecting", "closed"])
@pytest.mark.parametrize("run", [go_through, compute, compute_with_progress, compute_somewhere])
def test_the_scheduler_is_gone_when_a_run_begins(run, status, processes, tmp_path):
    """The client tries to reconnect for a while, closes itself, and cancels without a reason."""
    scheduler, _, client = processes
    (tmp_path / "go").touch()
    client._timeout = 0.5 if status == "closed" else 5
    scheduler.kill()
    scheduler.wait()
    _wait_until(lambda: client.status in (status, "closed"))  # a busy machine may be late
    with pytest.raises(ud.ClusterError, match=r"connection to the scheduler was lost"):
        run(da.ones((8, 1, 2, 2), chunks=(1, 1, 2, 2)), Waits(folder=str(tmp_path)), client, [])


@pytest.mark.parametrize("run", [compute, compute_with_progress])
def test_somebody_closes_the_client(run, processes, tmp_path):
    _, _, client = processes

    def close():
        _wait_until((tmp_path / "waits").exists)
        client.close()

    thread = threading.Thread(target=close, daemon=True)
    thread.start()
    x = da.ones((8, 1, 2, 2), chunks=(1, 1, 2, 2))
    with pytest.raises(ud.ClusterError, match=r"client has been closed\. Repeat the run"):
        run(x, Waits(folder=str(tmp_path)), client, [])
    thread.join()


@pytest.mark.parametrize("run", [go_through, compute])
def test_a_worker_dies_that_held_the_only_data(run, processes, tmp_path):
    _, worker, client = processes
    (data,) = client.scatter([np.ones((8, 1, 2, 2))])
    x = da.from_delayed(data, (8, 1, 2, 2), "float64").rechunk((1, 1, 2, 2))
    thread = kill_when_it_waits(worker, tmp_path)
    with pytest.raises(ud.ClusterError, match=r"has lost data that the run needs") as found:
        run(x, Waits(folder=str(tmp_path)), client, [])
    thread.join()
    assert isinstance(found.value.__cause__, CancelledError)


@pytest.mark.parametrize("run", [go_through, compute])
def test_cancelled_on_purpose(run, client, tmp_path):
    x = da.ones((8, 1, 2, 2), chunks=(1, 1, 2, 2))

    def cancel():
        _wait_until((tmp_path / "waits").exists)
        client.cancel(_futures(client))
        (tmp_path / "go").touch()

    thread = threading.Thread(target=cancel, daemon=True)
    thread.start()
    expected = ud.UDFRunCancelled if run is go_through else CancelledError
    with pytest.raises(expected) as found:
        run(x, Waits(folder=str(tmp_path)), client, [])
    thread.join()
    assert not isinstance(found.value, ud.ClusterError)


def _futures(client):
    """All futures that a client waits for."""
    return [distributed.Future(key, client) for key in list(client.futures)]
