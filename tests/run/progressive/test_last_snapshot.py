"""The last snapshot equals the results of run_udf."""

import concurrent.futures

import dask
import dask.array as da
import pytest

import udf_zoo
import udfdask as ud
from progressive_cases import ROI, ZOO, assert_same
from udfdask.udfs import SumSigUDF, SumUDF

pytest.importorskip("distributed")

pytestmark = [pytest.mark.point(30), pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")]


def check(x, udfs, how, **options):
    """Compare a run with snapshots, on the scheduler that `how` names, with one without."""
    expected = ud.compute(*ud.run_udf(x, udfs, **options), scheduler="synchronous")
    iterator = ud.run_udf_iter(x, udfs, **options, **how)
    snapshots = list(iterator)
    assert_same(snapshots[-1].buffers, *expected)
    return iterator, snapshots


@pytest.mark.parametrize("roi", [None, ROI], ids=["all", "roi"])
def test_of_the_zoo(x, options, roi):
    udfs = [cls() for cls in ZOO]
    iterator, snapshots = check(x, udfs, options, roi=roi)
    n_chunks = ud.explain(x, udfs, roi=roi).n_chunks
    assert len(snapshots) == n_chunks == iterator.n_chunks == iterator.n_merged


@pytest.mark.parametrize("cls", ZOO)
def test_of_one(x, cls):
    check(x, [cls()], {"scheduler": "threads", "num_workers": 3})


def test_one_signal_chunk_a_task(options):
    x = da.random.default_rng(0).random((4, 3, 12, 2), chunks=(1, 3, 2, 1))
    check(x, [SumUDF(), SumSigUDF()], options)


@pytest.mark.parametrize("sig_dims", [1, 3, 4])
def test_other_dimensions(values, sig_dims):
    x = da.from_array(values, chunks=2)
    _, (*_, last) = check(x, [udf_zoo.Chain()], {}, sig_dims=sig_dims)
    assert last.damage.shape == values.shape[: 4 - sig_dims]
    assert last.damage.all()


def test_other_ways_to_name_a_scheduler(x, client):
    udfs = [udf_zoo.Chain()]

    def bare(dsk, keys, **kwargs):
        return dask.get(dsk, keys)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for scheduler in (pool, dask.get, dask.threaded.get, client.get, bare):
            check(x, udfs, {"scheduler": scheduler})
        check(x, udfs, {"scheduler": "threads", "pool": pool})
    expected = ud.run_udf(x, udf_zoo.Chain()).compute(scheduler="synchronous")
    with dask.config.set(scheduler="synchronous"):
        iterator = ud.run_udf_iter(x, udf_zoo.Chain())
    assert_same(list(iterator)[-1].buffers, expected)
    with client.as_current():
        assert_same(list(ud.run_udf_iter(x, udf_zoo.Chain()))[-1].buffers, expected)
