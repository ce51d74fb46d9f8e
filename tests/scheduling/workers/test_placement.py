"""Blocks that only some workers of a cluster may load."""

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask import on_workers
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.scheduling.restrictions import workers_of
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import SumSigUDF, SumUDF

distributed = pytest.importorskip("distributed", reason="distributed is an extra")

N = 12


def stamp(block):
    """Put the number of the port of the worker at work into a block."""
    address = distributed.get_worker().address
    return np.full(block.shape, int(address.rpartition(":")[2]))


@pytest.fixture
def stamped():
    """An array whose blocks know where they were loaded."""
    x = da.ones((N, 3, 2, 2), chunks=(1, 3, 2, 2), dtype="int64")
    return x.map_blocks(stamp, meta=np.empty((0,) * 4, "int64"))


@pytest.fixture
def addresses(client):
    return sorted(workers_of(client))


@pytest.fixture
def wanted(addresses):
    """A worker for each block, unevenly, and the numbers of their ports."""
    workers = [addresses[i % 3 == 0] for i in range(N)]
    return workers, np.array([int(w.rpartition(":")[2]) for w in workers])


def placed(array, workers):
    return on_workers(array, lambda block: workers[block[0]])


def where(values):
    """The number in each block."""
    rows = np.asarray(values).reshape(N, -1)
    assert (rows == rows[:, :1]).all()
    return rows[:, 0]


def test_results_are_computed_where_blocks_may_be_loaded(stamped, wanted, client):
    workers, ports = wanted
    array = placed(stamped, workers)
    total, each = ud.run_udf(array, [SumUDF(), SumSigUDF()])
    total, each = ud.compute(total, each, scheduler=client)
    np.testing.assert_array_equal(where(each["intensity"]), 4 * ports)
    np.testing.assert_array_equal(total["intensity"], np.full((2, 2), 3 * ports.sum()))
    with client.as_current():
        alone = ud.run_udf(array, SumSigUDF(), roi=np.s_[2:9]).compute()
    np.testing.assert_array_equal(alone["intensity"][2:9, 0], 4 * ports[2:9])


def test_persisted_and_progressive_runs(stamped, wanted, client):
    workers, ports = wanted
    array = placed(stamped, workers)
    kept = ud.persist(array, ud.run_udf(array, SumSigUDF()), scheduler=client)
    values, each = ud.compute(*kept, scheduler=client)
    np.testing.assert_array_equal(where(values), ports)
    np.testing.assert_array_equal(where(each["intensity"]), 4 * ports)
    *_, last = ud.run_udf_iter(array, SumSigUDF(), scheduler=client)
    np.testing.assert_array_equal(where(last.buffers[0]["intensity"]), 4 * ports)


ROUTES = {
    "several users": lambda x: x.rechunk((1, 1, 2, 2)),
    "reduced": lambda x: x.sum(axis=(1, 2, 3)) // 12,
    "sliced": lambda x: x[:, 1:2],
    "added": lambda x: x + x - x.map_blocks(np.copy, meta=x._meta),
}


@pytest.mark.parametrize("route", ROUTES)
def test_plain_arrays(route, stamped, wanted, client):
    workers, ports = wanted
    (values,) = ud.compute(ROUTES[route](placed(stamped, workers)), scheduler=client)
    np.testing.assert_array_equal(where(values), ports)


def test_other_collections(stamped, wanted, client):
    xr = pytest.importorskip("xarray", reason="xarray is in the io extra")
    workers, ports = wanted
    array = placed(stamped, workers)
    labeled = xr.Dataset({"scan": (("y", "x", "ky", "kx"), array)})
    first = dask.delayed(np.max)(array[:1])
    labeled, first = ud.compute(labeled, first, scheduler=client)
    np.testing.assert_array_equal(where(labeled["scan"]), ports)
    assert first == ports[0]


def test_what_the_user_annotates_holds_for_other_tasks(stamped, wanted, addresses, client):
    workers, ports = wanted
    other = da.zeros((4, 2), chunks=1).map_blocks(stamp, meta=np.empty((0, 0), "int64"))
    both = [placed(stamped, workers), other]
    for annotated in (addresses[:1], lambda key: addresses[:1]):
        with dask.annotate(workers=annotated):
            here, there = ud.compute(*both, scheduler=client)
        np.testing.assert_array_equal(where(here), ports)
        assert set(there.ravel()) == {int(addresses[0].rpartition(":")[2])}


def iterate(array, scheduler):
    return list(ud.run_udf_iter(array, SumSigUDF(), scheduler=scheduler))


@pytest.mark.parametrize("run", [ud.compute, ud.persist, iterate])
def test_a_worker_that_is_not_there(run, stamped, client):
    array = on_workers(stamped, lambda block: {2: "tcp://127.0.0.1:9"}.get(block[0]))
    match = r"need a worker among \['tcp://127.0.0.1:9'\], but the cluster has tcp://"
    with pytest.raises(ArgumentValueError, match=match):
        run(array, scheduler=client)


def test_a_wish(stamped, client):
    array = on_workers(stamped, "tcp://127.0.0.1:9")
    each = ud.run_udf(array, SumSigUDF())
    (done,) = ud.compute(each, scheduler=client, allow_other_workers=True)
    assert (done["intensity"] > 0).all()


def test_arrays_that_no_worker_may_load_together(stamped, client, addresses):
    both = on_workers(stamped, addresses[0]) + on_workers(stamped, addresses[1])
    with pytest.raises(ArgumentValueError, match="but no worker can load all of them"):
        ud.compute(both, scheduler=client)


def test_other_schedulers_load_everything():
    x = da.ones((4, 2, 3), chunks=(1, 2, 3))
    with raise_if_dask_computes():
        array = on_workers(x, "tcp://127.0.0.1:9")
    for scheduler in ("synchronous", "threads"):
        (values,) = ud.compute(array, scheduler=scheduler)
        np.testing.assert_array_equal(values, np.ones((4, 2, 3)))


def test_equal_maps_give_equal_names():
    x = da.ones((2, 3), chunks=1)
    assert on_workers(x, ["b", "a"]).name == on_workers(x, ("a", "b")).name
    assert on_workers(x, "a").name == on_workers(x, lambda block: "a").name
    assert on_workers(x, "a").name != on_workers(x, "b").name
    first, second = ((lambda block, k=k: "a" if block[0] == k else None) for k in (0, 1))
    assert on_workers(x, first).name != on_workers(x, second).name
    assert on_workers(x, None) is x


@pytest.mark.parametrize(
    ("workers", "error", "match"),
    [
        (3, ArgumentTypeError, "workers must be addresses such as 'tcp://.*; got 3"),
        ([1, 2], ArgumentTypeError, r"got \[1, 2\]"),
        ({0: "a"}, ArgumentTypeError, "or a function of a block; got {0: 'a'}"),
        ([], ArgumentValueError, "has an empty list for a block"),
        (lambda block: 7, ArgumentTypeError, "got 7"),
    ],
)
def test_maps_that_cannot_be(workers, error, match):
    with pytest.raises(error, match=match):
        on_workers(da.ones((2, 3), chunks=1), workers)
