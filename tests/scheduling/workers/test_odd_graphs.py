"""Tasks keep their tags, and computations their numbers, whatever graph the tasks are in."""

import dask
import dask.array as da
import dask.bag as db
import numpy as np
import pytest
from dask.delayed import Delayed

import udfdask as ud
from counting import counts
from cuda_udfs import Added, Cuda, Rows, loaded, numbers
from udfdask import on_workers

pytestmark = pytest.mark.full

DATA = np.random.default_rng(3).integers(0, 99, (12, 3, 4, 4))


def lazy(folder):
    """Data that note where they are loaded."""
    array = da.from_array(DATA - 1, chunks=(1, 3, 4, 4))
    return array.map_blocks(loaded, folder=folder, dtype="int64", meta=np.empty(0, "int64"))


def check(result):
    sums, total = numbers(DATA)
    np.testing.assert_array_equal(result["sums"], sums)
    np.testing.assert_array_equal(result["total"], total)


def check_where(folder):
    """What needs the device ran there, each chunk once."""
    found = counts(folder)
    assert set(found.values()) == {1}, found
    for name in found:
        assert name.startswith("rows") or name.endswith("@cuda-0"), name
    assert sum(name.startswith("cuda") for name in found) == len(DATA)


LINALG = {
    "cholesky": lambda m: da.linalg.cholesky(m, lower=True),
    "lu": lambda m: da.linalg.lu(m)[2],
    "inv": da.linalg.inv,
    "solve": lambda m: da.linalg.solve(m, da.ones(4, chunks=2)),
}


@pytest.mark.parametrize("name", LINALG)
@pytest.mark.parametrize("tagged", [True, False])
def test_names_that_depend_on_each_other_both_ways(name, tagged, mixed, folder):
    a = numbers(DATA)[1].astype("f8")
    spd = a @ a.T + np.eye(4)
    if tagged:
        total = ud.run_udf(lazy(folder), Cuda(folder))["total"].astype("f8").rechunk(2)
        m = total @ total.T + da.eye(4, chunks=2)
    else:
        m = on_workers(da.from_array(spd, chunks=2), "cpu-0")
    expected = LINALG[name](da.from_array(spd, chunks=2)).compute(scheduler="synchronous")
    made = LINALG[name](m)
    for lazily in ((made,), ud.persist(made, scheduler=mixed)):
        (found,) = ud.compute(*lazily, scheduler=mixed)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def delayed_block(array, client):
    return array.to_delayed().ravel()[0], DATA[:1]


def delayed_number(array, client):
    return dask.delayed(sum)([1, 2]), 3


def legacy_delayed(array, client):
    return Delayed("legacy", {"legacy": (sum, [1, 2])}), 3


def future(array, client):
    return dask.delayed(client.submit(lambda: 3)), 3


def persisted_delayed(array, client):
    return client.persist(dask.delayed(sum)([1, 2])), 3


def persisted_array(array, client):
    return client.persist(da.ones((4, 3), chunks=2) + 1), np.full((4, 3), 2.0)


def bag(array, client):
    return db.from_sequence(range(6), npartitions=2).map(lambda i: i + 1).sum(), 21


def dataset(array, client):
    xr = pytest.importorskip("xarray", reason="xarray is in the io extra")
    return xr.Dataset({"ones": ("x", da.ones(3))})["ones"], np.ones(3)


BESIDE = [
    delayed_block,
    delayed_number,
    legacy_delayed,
    future,
    persisted_delayed,
    persisted_array,
    bag,
    dataset,
]


@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize("make", BESIDE, ids=lambda make: make.__name__)
def test_other_collections_beside(make, fuse, mixed, folder, tmp_path):
    (tmp_path / "other").mkdir()
    other, expected = make(lazy(str(tmp_path / "other")), mixed)
    with dask.config.set({"optimization.fuse.active": fuse}):
        results = ud.run_udf(lazy(folder), [Rows(folder), Cuda(folder)])
        rows, cuda, beside = ud.compute(*results, other, scheduler=mixed)
    check(rows)
    check(cuda)
    np.testing.assert_array_equal(beside, expected)
    found = counts(folder)
    assert set(found.values()) == {1}
    assert all(name.endswith("@cuda-0") for name in found if name.startswith("cuda"))


def test_delayed_values_of_a_result(mixed, folder):
    result = ud.run_udf(lazy(folder), Cuda(folder))
    blocks = ud.compute(*result["sums"].to_delayed().ravel(), scheduler=mixed)
    np.testing.assert_array_equal(np.concatenate(blocks), numbers(DATA)[0])
    check_where(folder)


def test_persisted_data(mixed, folder):
    array = mixed.persist(da.from_array(DATA, chunks=(1, 3, 4, 4)) + 0)
    with dask.config.set({"optimization.fuse.active": False}):
        (found,) = ud.compute(ud.run_udf(array, Cuda(folder)), scheduler=mixed)
    check(found)
    check_where(folder)


def test_only_what_no_frame_is_wanted_of(client, folder):
    """Blocks outside of the region of interest take no device."""
    roi = np.zeros((12, 3), bool)
    roi[:2] = True
    result = ud.run_udf(lazy(folder), Cuda(folder), roi=roi)
    (rest,) = ud.compute(result["sums"][5:], scheduler=client)
    assert rest.shape == (7, 3)


@pytest.mark.parametrize("in_graph", [True, False])
def test_aux_data_are_made_anywhere(in_graph, mixed, recorded, folder):
    array = da.from_array(DATA, chunks=(1, 3, 4, 4))
    weights = (da.from_array(DATA, chunks=(1, 3, 2, 4)) + 1).sum(axis=(2, 3))
    aux = ud.UDF.aux_data(weights, "nav", dtype="int64")
    data = array if in_graph else lazy(folder)
    (found,) = ud.compute(ud.run_udf(data, Added(folder, aux)), scheduler=mixed)
    sums, _ = numbers(DATA)
    np.testing.assert_array_equal(found["sums"], 2 * sums + 16)
    tagged = [key for key, _, resources in recorded() if resources]
    assert tagged
    assert not any("sum-aggregate" in key for key in tagged)


@pytest.mark.parametrize("option", [{"num_workers": 2}, {"traverse": False}])
@pytest.mark.parametrize("udf", [Rows, Cuda])
def test_options_of_other_schedulers_are_passed_over(udf, option, mixed, folder):
    told = []
    for more in ({}, {"progress": told.append}):
        (found,) = ud.compute(
            ud.run_udf(lazy(folder), udf(folder)), scheduler=mixed, **option, **more
        )
        check(found)
    assert told


def test_a_result_that_is_persisted(mixed, folder):
    with mixed.as_current():
        kept = ud.run_udf(lazy(folder), Cuda(folder)).persist()
        check(kept.compute())
    check_where(folder)
