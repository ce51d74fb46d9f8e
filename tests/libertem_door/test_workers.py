"""The workers of LiberTEM's `make_dask_array`, as they are."""

import uuid
from pathlib import Path

import dask.array as da
import numpy as np
import pytest

pytest.importorskip("libertem", reason="libertem is in the extra of that name")
pytest.importorskip("distributed", reason="distributed is an extra")

import distributed
import libertem.api as lt
from libertem.contrib import daskadapter
from libertem.contrib.daskadapter import make_dask_array

import udfdask as ud
from counting import counts
from udfdask import on_workers
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.udfs import SumSigUDF, SumUDF

NAV = (6, 8)


@pytest.fixture(scope="module")
def client():
    """A cluster of two workers with names, on one machine."""
    spec = {n: {"cls": distributed.Nanny, "options": {"nthreads": 1}} for n in ("left", "right")}
    scheduler = {"cls": distributed.Scheduler, "options": {"port": 0, "dashboard_address": ":0"}}
    with (
        distributed.SpecCluster(workers=spec, scheduler=scheduler, silence_logs=30) as cluster,
        distributed.Client(cluster, set_as_default=False) as made,
    ):
        made.wait_for_workers(2)
        yield made


@pytest.fixture(scope="module")
def data():
    return np.random.default_rng(0).integers(0, 99, (*NAV, 4, 4)).astype(np.float32)


@pytest.fixture(params=["raw", "memory"])
def dataset(request, data, tmp_path):
    with lt.Context.make_with("inline") as context:
        if request.param == "memory":
            yield context.load("memory", data=data, sig_dims=2, num_partitions=5)
        else:
            data.tofile(tmp_path / "scan.raw")
            options = {"nav_shape": NAV, "sig_shape": (4, 4), "dtype": "f4"}
            yield context.load("raw", str(tmp_path / "scan.raw"), num_partitions=5, **options)


def test_any_worker(dataset, data):
    array, workers = make_dask_array(dataset)
    assert set(workers.values()) == {None}
    result = ud.run_udf(on_workers(array, workers), SumUDF()).compute(scheduler="synchronous")
    np.testing.assert_array_equal(result["intensity"], data.sum((0, 1)))


@pytest.mark.full
@pytest.mark.parametrize("with_roi", [False, True])
def test_each_partition_is_loaded_where_it_is(
    dataset, data, client, with_roi, tmp_path, monkeypatch
):
    """Its partitions have no whole rows, so that some rows are on both workers."""
    folder = str(tmp_path / "notes")
    (tmp_path / "notes").mkdir()

    def noting(p, dest_dtype, roi, array_backend):
        place = f"{p.slice.origin[0]}-{distributed.get_worker().name}"
        Path(folder, f"{place}~{uuid.uuid4().hex}").touch()
        return p.get_macrotile(dest_dtype=dest_dtype, roi=roi, array_backend=array_backend)

    monkeypatch.setattr(daskadapter, "_get_tile_straight", noting)
    roi = np.random.default_rng(1).random(NAV) < 0.5 if with_roi else None
    array, workers = make_dask_array(dataset, roi=roi)
    names = ["right", "left", "left", "right", "left"]
    workers = {part: [name] for part, name in zip(workers, names, strict=True)}
    results = ud.run_udf(on_workers(array, workers), [SumUDF(), SumSigUDF()])
    total, each = ud.compute(*results, scheduler=client)
    frames = data if roi is None else data[roi]
    np.testing.assert_array_equal(total["intensity"], frames.reshape(-1, 4, 4).sum(axis=0))
    np.testing.assert_array_equal(each["intensity"], frames.sum(axis=(-1, -2)))
    first = [part.slice.origin[0] for part in dataset.get_partitions()]
    wanted = {f"{number}-{name}": 1 for number, name in zip(first, names, strict=True)}
    assert counts(folder) == wanted


def test_workers_of_another_array(dataset):
    array, workers = make_dask_array(dataset)
    with pytest.raises(ArgumentValueError, match="made of none of them"):
        on_workers(da.ones((4, 4, 4)), workers)
    with pytest.raises(ArgumentTypeError, match="among Delayed"):
        on_workers(array, {**workers, 0: "left"})
    with pytest.raises(ArgumentValueError, match="empty list"):
        on_workers(array, {part: [] for part in workers})


def test_names_depend_on_the_workers(dataset):
    array, workers = make_dask_array(dataset)
    names = {
        on_workers(array, dict.fromkeys(workers, name)).name for name in (None, "left", "right")
    }
    assert len(names) == 3
    assert array.name not in names
