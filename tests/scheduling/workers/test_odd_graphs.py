"""Tasks keep their tags, and computations their numbers, whatever graph the tasks are in."""

import dask
import dask.array as da
import dask.bag as db
import numpy as np
import pytest

import udfdask as ud
from counting import counts
from cuda_udfs import Cuda, Rows, loaded, numbers

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


def delayed_block(array, client):
    return array.to_delayed().ravel()[0], DATA[:1]


def delayed_number(array, client):
    return dask.delayed(sum)([1, 2]), 3


def future(array, client):
    return dask.delayed(client.submit(lambda: 3)), 3


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
    future,
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


def test_persisted_data(mixed, folder):
    array = mixed.persist(da.from_array(DATA, chunks=(1, 3, 4, 4)) + 0)
    with dask.config.set({"optimization.fuse.active": False}):
        (found,) = ud.compute(ud.run_udf(array, Cuda(folder)), scheduler=mixed)
    check(found)
    check_where(folder)
