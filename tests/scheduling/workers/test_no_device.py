"""UDFs that need a device where there is none, or where a worker with one comes later."""

from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from cuda_udfs import Cuda, Cupy, Rows, loaded, numbers
from udfdask.errors import DeviceError

pytestmark = pytest.mark.full

distributed = pytest.importorskip("distributed", reason="distributed is an extra")

DATA = np.random.default_rng(4).integers(0, 99, (6, 3, 4, 4))


def lazy(folder, *udfs):
    return da.from_array(DATA, chunks=(1, 3, 4, 4)), [udf(folder) for udf in udfs]


def run(folder, *udfs):
    array, made = lazy(folder, *udfs)
    return ud.run_udf(array, made)


def computed(folder, client, **options):
    return ud.compute(*run(folder, Rows, Cuda), scheduler=client, **options)


def with_progress(folder, client):
    return computed(folder, client, progress=lambda state: None)


def persisted(folder, client):
    kept = ud.persist(*run(folder, Rows, Cuda), scheduler=client)
    return ud.compute(*kept, scheduler=client)


def last_snapshot(folder, client):
    array, udfs = lazy(folder, Rows, Cuda)
    *_, last = ud.run_udf_iter(array, udfs, scheduler=client)
    return last.buffers


DOORS = [computed, with_progress, persisted, last_snapshot]


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_nobody_has_a_device(door, client, folder):
    with pytest.raises(DeviceError, match=r"^Cuda .*--resources CUDA=1"):
        door(folder, client)
    assert not list(Path(folder).iterdir())


def test_resources_that_nobody_has(client, folder):
    array, (udf,) = lazy(folder, Cuda)
    resources = ud.get_resources(udf)
    with pytest.raises(DeviceError, match=r"^Cuda can run only on a CUDA device"):
        ud.compute(ud.run_udf(array, udf), scheduler=client, resources=resources)
    with pytest.raises(DeviceError, match=r"^Cuda can run only on a CUDA device"):
        next(ud.run_udf_iter(array, udf, scheduler=client, resources=resources))


def test_all_udfs_that_need_it_are_named(client, folder):
    with pytest.raises(DeviceError, match=r"^Cuda, Cupy can run only on a CUDA device"):
        ud.compute(*run(folder, Cuda, Rows, Cupy, Cuda), scheduler=client)
    with pytest.raises(DeviceError, match=r"^Cupy can run only on a CUDA device"):
        ud.compute(*run(folder, Rows, Cupy), scheduler=client)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_a_worker_that_comes(door, folder):
    scheduler = {"cls": distributed.Scheduler, "options": {"port": 0, "dashboard_address": ":0"}}
    worker = {"cls": distributed.Worker, "options": {"nthreads": 1, "resources": {"CUDA": 1}}}
    with (
        distributed.SpecCluster(worker=worker, scheduler=scheduler, silence_logs=40) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        cluster.adapt(minimum=0, maximum=1, interval="100ms")
        results = door(folder, client)
    sums, total = numbers(DATA)
    np.testing.assert_array_equal(results[1]["sums"], sums)
    np.testing.assert_array_equal(results[1]["total"], total)


def test_nothing_is_computed_for_chunks_that_nobody_can_run(client, folder):
    (param,) = lazy(folder)[:1]
    param = param.map_blocks(loaded, folder=folder, dtype="int64", meta=np.empty(0, "int64"))
    with pytest.raises(DeviceError, match=r"^Cuda can run only on a CUDA device"):
        list(ud.run_udf_iter(lazy(folder)[0], Cuda(folder, offset=param.sum()), scheduler=client))
    assert not list(Path(folder).iterdir())


@pytest.mark.parametrize("scheduler", ["threads", "synchronous", "processes"])
def test_no_device_on_this_machine(scheduler, folder):
    match = "needs a CUDA device was run where there is none"
    array, udfs = lazy(folder, Rows, Cuda)
    results = ud.run_udf(array, udfs)
    with dask.config.set(scheduler=scheduler):
        for run in (ud.compute, ud.persist, lambda *_: list(ud.run_udf_iter(array, udfs))):
            with pytest.raises(DeviceError, match=match):
                run(*results)
        results[0].compute()  # only what is asked for counts
