"""Labeled results together with others: each chunk is loaded once."""

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from counting import CountedChain, CountedData, CountedNav, counts
from udfdask.udfs import SumSigUDF

xr = pytest.importorskip("xarray", reason="xarray is an extra")
pytest.importorskip("udfdask.xarray")

SIG = ("ky", "kx")
N_CHUNKS = 6


@pytest.fixture(params=["y x ky kx", "ky y kx x"], ids=["in order", "moved"])
def counted(request, folder):
    """Data that record when they are loaded, in any order of dimensions."""
    values = np.arange(6 * 5 * 3 * 4).reshape(6, 5, 3, 4)
    dims = request.param.split()
    array = xr.DataArray(values, dims=("y", "x", "ky", "kx")).transpose(*dims)
    sizes = {"y": 2, "x": 3, "ky": 3, "kx": 4}
    data = da.from_array(
        CountedData(array.values, folder),
        chunks=[sizes[dim] for dim in dims],
        meta=np.empty(0, "int64"),
    )
    return array.copy(data=data)


def check_once(folder, runs=()):
    found = counts(folder)
    loads = {name: n for name, n in found.items() if name.startswith("load")}
    assert len(loads) == N_CHUNKS
    assert set(found.values()) == {1}
    for kind in runs:
        assert sum(name.startswith(f"run-{kind}-") for name in found) == N_CHUNKS


@pytest.mark.parametrize("progress", [False, True])
def test_datasets_results_and_arrays_together(counted, folder, options, progress):
    chain, nav = counted.udf.run_udf([CountedChain(folder), CountedNav(folder)], sig_dims=SIG)
    plain = ud.run_udf(counted.transpose("y", "x", *SIG).data, SumSigUDF())
    mixed = [chain, nav["sums"], plain, {"mean": counted.mean(SIG)}, counted.max()]
    found = ud.compute(*mixed, progress=progress, **options)
    check_once(folder, ["chain", "nav"])
    wanted = counted.sum(SIG).compute()
    assert [type(value) for value in found[:3]] == [xr.Dataset, xr.DataArray, ud.Result]
    np.testing.assert_array_equal(found[0]["sums"], wanted)
    np.testing.assert_array_equal(found[1], wanted)
    np.testing.assert_array_equal(found[2]["intensity"], wanted)
    np.testing.assert_array_equal(found[3]["mean"], wanted / 12)


@pytest.mark.parametrize(
    "compute",
    [
        lambda datasets: dask.compute(*datasets),
        lambda datasets: dask.persist(*datasets),
        lambda datasets: ud.persist(*datasets),
        lambda datasets: [xr.merge(datasets).compute()],
        lambda datasets: [xr.merge(datasets).load()],
    ],
    ids="compute persist ud.persist merged loaded".split(),
)
def test_by_xarray_and_dask(counted, folder, compute):
    one = counted.udf.run_udf(CountedChain(folder), sig_dims=SIG)
    other = counted.udf.run_udf(
        CountedNav(folder), sig_dims=SIG, rename={"sums": "s", "means": "m"}
    )
    with dask.config.set(scheduler="threads"):
        found = compute([one, other])
    check_once(folder)
    for dataset in found:
        assert dataset.compute() is not None
    assert not counts(folder)
