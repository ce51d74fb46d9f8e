"""Two chunk tasks for each chunk: the same numbers, one load, and as ever where one is enough."""

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from counting import CountedChain, CountedNav, counted_block, counts
from cuda_udfs import Cuda, numbers
from stand_in import numpy_standing_in_for_cupy
from udfdask.testing import raise_if_dask_computes

SHAPE, CHUNKS = (6, 5, 3, 4), (2, 3, 3, 2)
DATA = np.arange(360).reshape(SHAPE)


class CudaChain(CountedChain):
    """Buffers of every kind, merged in order."""

    def get_backends(self):
        return ("cuda",)


@pytest.fixture(autouse=True)
def device():
    """A device in this process, for the schedulers of threads."""
    with numpy_standing_in_for_cupy(), dask.config.set(scheduler="threads", num_workers=2):
        yield


def lazy(folder, chunks=CHUNKS):
    array = da.from_array(DATA - 1, chunks=chunks)
    return array.map_blocks(counted_block, folder=folder, dtype="int64", meta=np.empty(0, "int64"))


def check_once(folder, *udfs):
    found = counts(folder)
    found.pop("results", None)
    assert set(found.values()) == {1}, found
    assert sum(name.startswith("load-") for name in found) == 12
    for udf in udfs:
        assert sum(name.startswith(f"run-{udf}-") for name in found) == 6


ROUTES = {
    "joint": ud.compute,
    "plain": dask.compute,
    "arrays": lambda a, b: dask.compute(b["sums"], a["sums"] + 1, da.ones(3)),
    "persisted": lambda a, b: dask.compute(*dask.persist(a, b)),
    "our persist": lambda a, b: ud.compute(*ud.persist(a, b)),
    "optimized": lambda a, b: dask.compute(*dask.optimize(a, b)),
    "optimized arrays": lambda a, b: dask.compute(*dask.optimize(a["sums"], b["sums"])),
    "chained": lambda a, b: dask.compute((a["sums"] > 3).sum(), b["sums"].mean(axis=0)),
}


@pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")
@pytest.mark.parametrize("turned", [False, True], ids=["ab", "ba"])
@pytest.mark.parametrize("route", ROUTES)
def test_each_block_is_loaded_once(route, turned, folder):
    """Law 2, for tasks of both groups that read the same blocks."""
    with raise_if_dask_computes():
        a, b = ud.run_udf(lazy(folder), [CudaChain(folder), CountedNav(folder)])
    ROUTES[route](*((b, a) if turned else (a, b)))
    check_once(folder, "chain", "nav")


def test_each_group_gets_its_own_aux_data(tmp_path):
    offsets = np.arange(30).reshape(6, 5)
    aux = [
        ud.UDF.aux_data(da.from_array(offsets, chunks=2), "nav", dtype="int64"),
        ud.UDF.aux_data(2 * offsets, "nav", dtype="int64"),
    ]

    class OnHost(Cuda):
        offers = ("numpy",)

    array = da.from_array(DATA, chunks=(2, 3, 3, 4))
    sums = numbers(DATA)[0]
    for classes in ((Cuda, OnHost), (OnHost, Cuda)):
        udfs = [cls(str(tmp_path), offset=values) for cls, values in zip(classes, aux, strict=True)]
        first, second = ud.compute(*ud.run_udf(array, udfs))
        np.testing.assert_array_equal(first["sums"], sums + offsets)
        np.testing.assert_array_equal(second["sums"], sums + 2 * offsets)
        *_, last = ud.run_udf_iter(array, udfs)
        np.testing.assert_array_equal(last.buffers[0]["sums"], sums + offsets)
        np.testing.assert_array_equal(last.buffers[1]["sums"], sums + 2 * offsets)
    # one group of two has aux data
    folder = str(tmp_path)
    alone, first = ud.compute(*ud.run_udf(array, [Cuda(folder), OnHost(folder, offset=aux[0])]))
    np.testing.assert_array_equal(alone["sums"], sums)
    np.testing.assert_array_equal(first["sums"], sums + offsets)
