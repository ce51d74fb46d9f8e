"""Nothing waits for ever: a worker that is not there is an error, or may come within a time."""

import threading
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from cuda_udfs import Cuda, Cupy, Heavy, HeavyRows, Rows, loaded, numbers
from making import LATE, wait_until
from stand_in import numpy_standing_in_for_cupy
from udfdask.errors import ArgumentValueError, DeviceError, UDFError, UDFWarning
from udfdask.io import on_workers

pytestmark = pytest.mark.full

distributed = pytest.importorskip("distributed", reason="distributed is an extra")

DATA = np.random.default_rng(4).integers(0, 99, (6, 3, 4, 4))
NOTHING = r"the cluster has 2 worker\(s\), 2 with no resources"


def lazy(folder, *udfs):
    return da.from_array(DATA, chunks=(1, 3, 4, 4)), [udf(folder) for udf in udfs]


def run(folder, *udfs):
    array, made = lazy(folder, *udfs)
    return ud.run_udf(array, made)


def computed(folder, client):
    return ud.compute(*run(folder, Rows, Cuda), scheduler=client)


def with_progress(folder, client):
    return ud.compute(*run(folder, Rows, Cuda), scheduler=client, progress=lambda state: None)


def alone(folder, client):
    with client.as_current():
        return (*run(folder, Rows), run(folder, Cuda)[0].compute())


def persisted(folder, client):
    kept = ud.persist(*run(folder, Rows, Cuda), scheduler=client)
    return ud.compute(*kept, scheduler=client)


def last_snapshot(folder, client):
    array, udfs = lazy(folder, Rows, Cuda)
    *_, last = ud.run_udf_iter(array, udfs, scheduler=client)
    return last.buffers


DOORS = [computed, with_progress, alone, persisted, last_snapshot]


def check(results):
    sums, total = numbers(DATA)
    np.testing.assert_array_equal(results[1]["sums"], sums)
    np.testing.assert_array_equal(results[1]["total"], total)


def check_forgotten(client):
    """A cluster keeps nothing of a run that has ended; it is told in the background."""
    wait_until(
        lambda: not client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
    )


@contextmanager
def cluster(workers=None, worker=None):
    """A client of a cluster whose workers live in this process."""
    scheduler = {"cls": distributed.Scheduler, "options": {"port": 0, "dashboard_address": ":0"}}
    workers = {k: {"cls": distributed.Worker, "options": v} for k, v in (workers or {}).items()}
    worker = None if worker is None else {"cls": distributed.Worker, "options": worker}
    with (
        distributed.SpecCluster(
            workers=workers, worker=worker, scheduler=scheduler, silence_logs=40
        ) as made,
        distributed.Client(made, set_as_default=False) as client,
    ):
        if workers:
            client.wait_for_workers(len(workers))
        yield client


@pytest.fixture
def patience():
    """How long runs wait for a worker: a time that a test can wait."""
    with dask.config.set({"udfdask.resources-timeout": "500 ms"}):
        yield


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_nobody_has_a_device(door, client, folder):
    match = (
        r"^Cuda can run only on a CUDA device: the tasks need a worker with the resources CUDA=1, "
        rf"but {NOTHING}\. Start such a worker.*--resources CUDA=1.*worker_spec.*get_backends.*$"
    )
    with (
        dask.config.set({"udfdask.resources-timeout": "1 day"}),  # at once all the same
        pytest.raises(UDFError, match=match) as caught,
    ):
        door(folder, client)
    assert isinstance(caught.value, (DeviceError, RuntimeError))
    assert not list(Path(folder).iterdir())


def test_all_udfs_that_need_it_are_named(client, folder):
    with pytest.raises(DeviceError, match=r"^Cuda, Cupy can run only on a CUDA device"):
        ud.compute(*run(folder, Cuda, Rows, Cupy, Cuda), scheduler=client)
    with pytest.raises(DeviceError, match=r"^Cupy can run only on a CUDA device"):
        ud.compute(*run(folder, Rows, Cupy), scheduler=client)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_no_worker_at_all(door, patience, folder):
    match = (
        r"the cluster has no workers.*None came within 0.5 s \(config udfdask.resources-timeout\)"
    )
    with cluster() as client:
        with (
            pytest.warns(UDFWarning, match="the cluster has no workers.*Waiting for one for 0.5 s"),
            pytest.raises(DeviceError, match=match),
        ):
            door(folder, client)
        check_forgotten(client)


@pytest.fixture
def long_patience():
    """A time in which any machine starts a worker."""
    with dask.config.set({"udfdask.resources-timeout": LATE}):
        yield


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_a_worker_that_comes(door, long_patience, folder):
    with cluster(worker={"nthreads": 1, "resources": {"CUDA": 1}}) as client:
        client.cluster.adapt(minimum=0, maximum=1, interval="100ms")
        with pytest.warns(UDFWarning, match=f"Waiting for one for {LATE} s"):
            check(door(folder, client))


def test_an_adaptive_cluster_without_devices(patience, folder):
    with cluster({"plain": {"nthreads": 1, "resources": {"GPU": 2}}}, {"nthreads": 1}) as client:
        client.cluster.adapt(minimum=1, maximum=1, interval="100ms")
        with (
            pytest.warns(UDFWarning, match="1 with GPU=2"),
            pytest.raises(DeviceError, match=r"1 with GPU=2.*None came within 0.5 s"),
        ):
            computed(folder, client)
        client.cluster.adapt(minimum=1, maximum=1).stop()
        with pytest.raises(DeviceError, match=r"1 with GPU=2\. Start such a worker"):
            computed(folder, client)


@pytest.mark.parametrize("door", [computed, with_progress, last_snapshot])
def test_the_worker_is_lost(door, patience, tmp_path, folder):
    workers = {
        "plain": {"nthreads": 1},
        "device": {"nthreads": 1, "resources": {"CUDA": 1}},
    }
    with cluster(workers) as client:
        left = threading.Thread(target=leave, args=(client, folder))
        left.start()
        with (
            pytest.warns(UDFWarning, match=r"the cluster has 1 worker\(s\), 1 with no resources"),
            pytest.raises(DeviceError, match=r"None came within 0.5 s"),
        ):
            door_of_slow(door, folder, client)
        left.join()
        check_forgotten(client)


def door_of_slow(door, folder, client):
    """Go through a door with a run of minutes, which no test waits for."""
    array = da.from_array(np.repeat(DATA, 20, axis=0), chunks=(1, 3, 4, 4))
    udf = Cuda(folder, pause=1)
    if door is last_snapshot:
        return list(ud.run_udf_iter(array, udf, scheduler=client))
    more = {"progress": lambda state: None} if door is with_progress else {}
    return ud.compute(ud.run_udf(array, udf), scheduler=client, **more)


def leave(client, folder):
    """Take the worker with the device away once it is at work."""
    while not list(Path(folder).iterdir()):
        time.sleep(0.01)
    client.retire_workers(names=["device"])


@pytest.mark.parametrize("door", [computed, with_progress, persisted])
def test_a_worker_that_is_needed_no_more(door, patience, folder):
    """An adaptive cluster lets such a worker go while others have hours of work."""
    workers = {"plain": {"nthreads": 1}, "device": {"nthreads": 1, "resources": {"CUDA": 1}}}
    slow = ud.run_udf(da.from_array(DATA, chunks=(1, 3, 4, 4)), Rows(folder, pause=0.5))
    fast = ud.run_udf(da.from_array(DATA[:1] + 1, chunks=(1, 3, 4, 4)), Cuda(folder))
    more = {"progress": lambda state: None} if door is with_progress else {}
    with cluster(workers) as client:
        left = threading.Thread(target=leave_when_done, args=(client, folder))
        left.start()
        go = ud.persist if door is persisted else ud.compute
        found = ud.compute(*go(fast, slow, scheduler=client, **more), scheduler=client)
        left.join()
    for result, data in zip(found, (DATA[:1] + 1, DATA), strict=True):
        np.testing.assert_array_equal(result["sums"], numbers(data)[0])


def leave_when_done(client, folder):
    """Take the worker with the device away once no task needs it any more."""
    while not list(Path(folder).glob("cuda-*")) or client.run_on_scheduler(unfinished):
        time.sleep(0.01)
    client.retire_workers(names=["device"])


def unfinished(dask_scheduler):
    """How many tasks of a UDF that needs a device have still to run."""
    tasks = dask_scheduler.tasks.items()
    return sum("cuda" in str(k) and t.state not in ("memory", "released") for k, t in tasks)


@pytest.mark.parametrize("cls", [Heavy, HeavyRows])
@pytest.mark.parametrize("door", ["compute", "iter"])
def test_a_heavy_parameter_where_there_is_no_worker_yet(cls, door, long_patience, folder):
    array, udf = lazy(folder)[0], cls(folder, np.ones(300_000, int))
    with cluster(worker={"nthreads": 1, "resources": {"CUDA": 1}}) as client:
        client.cluster.adapt(minimum=0, maximum=1, interval="100ms")
        warned = pytest.warns(UDFWarning, match="Waiting") if cls is Heavy else nullcontext()
        with warned:
            if door == "iter":
                *_, last = ud.run_udf_iter(array, udf, scheduler=client)
                found = last.buffers[0]
            else:
                (found,) = ud.compute(ud.run_udf(array, udf), scheduler=client)
    np.testing.assert_array_equal(found["sums"], numbers(DATA)[0] + 300_000)


def test_nothing_is_computed_for_chunks_that_nobody_can_run(client, folder):
    (param,) = lazy(folder)[:1]
    param = param.map_blocks(loaded, folder=folder, dtype="int64", meta=np.empty(0, "int64"))
    with pytest.raises(DeviceError, match=r"^Heavy can run only on a CUDA device"):
        list(ud.run_udf_iter(lazy(folder)[0], Heavy(folder, param), scheduler=client))
    assert not list(Path(folder).iterdir())


@pytest.mark.parametrize("beside", [(), (Cuda,)])
def test_the_worker_of_placed_blocks_is_lost(beside, patience, folder):
    workers = {
        "device": {"nthreads": 1},
        "other": {"nthreads": 1, "resources": {"CUDA": 1}},
    }
    repeated = da.from_array(np.repeat(DATA, 20, axis=0), chunks=(1, 3, 4, 4))
    array = on_workers(repeated.map_blocks(slowly, meta=np.empty(0, "int64")), "device")
    udfs = [cls(folder, pause=1) for cls in (Rows, *beside)]
    with cluster(workers) as client:
        left = threading.Thread(target=leave, args=(client, folder))
        left.start()
        with (
            pytest.warns(UDFWarning, match=r"can be loaded only on \['device'\]"),
            pytest.raises(ArgumentValueError, match=r"can be loaded only on.*None came within 0.5"),
        ):
            ud.compute(*ud.run_udf(array, udfs), scheduler=client)
        left.join()
        check_forgotten(client)


def slowly(block):
    """The block, after a while."""
    time.sleep(0.5)
    return block


def test_other_work_goes_on_beside(client, folder):
    (rows,) = ud.compute(*run(folder, Rows), scheduler=client)
    np.testing.assert_array_equal(rows["sums"], numbers(DATA)[0])


@pytest.mark.parametrize("scheduler", ["threads", "synchronous", "processes"])
def test_no_device_on_this_machine(scheduler, folder):
    match = "^Cuda can run only on a CUDA device, but this machine has none"
    array, udfs = lazy(folder, Rows, Cuda)
    results = ud.run_udf(array, udfs)
    for door in (ud.compute, ud.persist):
        with pytest.raises(DeviceError, match=match):
            door(*results, scheduler=scheduler)
    with dask.config.set(scheduler=scheduler):
        with pytest.raises(DeviceError, match=match):
            results[1].compute()
        with pytest.raises(DeviceError, match=match):
            ud.run_udf_iter(array, udfs)
        assert not list(Path(folder).iterdir())
        results[0].compute()  # only what is asked for counts


def test_a_device_on_this_machine(folder):
    with numpy_standing_in_for_cupy():
        for scheduler in ("threads", "synchronous"):
            check(ud.compute(*run(folder, Rows, Cuda), scheduler=scheduler))
            array, udfs = lazy(folder, Rows, Cuda)
            *_, last = ud.run_udf_iter(array, udfs, scheduler=scheduler)
            check(last.buffers)


@pytest.mark.parametrize("value", [-1, "soon", None, True, "inf"])
def test_times_that_cannot_be(value, client, folder):
    with (
        dask.config.set({"udfdask.resources-timeout": value}),
        pytest.raises(ArgumentValueError, match=r"udfdask.resources-timeout must be a number of"),
    ):
        ud.compute(*run(folder, Cuda), scheduler=client)
