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

pytestmark = pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")


@pytest.mark.point(30)
class TestLastSnapshot:
    @pytest.mark.parametrize("roi", [None, ROI], ids=["all", "roi"])
    def test_of_the_zoo(self, x, options, roi):
        udfs = [cls() for cls in ZOO]
        expected = ud.compute(*ud.run_udf(x, udfs, roi=roi), scheduler="synchronous")
        iterator = ud.run_udf_iter(x, udfs, roi=roi, **options)
        snapshots = list(iterator)
        n_chunks = ud.explain(x, udfs, roi=roi).n_chunks
        assert len(snapshots) == n_chunks == iterator.n_chunks == iterator.n_merged
        for found, wanted in zip(snapshots[-1].buffers, expected, strict=True):
            assert_same(found, wanted)

    @pytest.mark.parametrize("cls", ZOO)
    def test_of_one(self, x, cls):
        expected = ud.run_udf(x, cls()).compute(scheduler="synchronous")
        *_, last = ud.run_udf_iter(x, cls(), scheduler="threads", num_workers=3)
        assert_same(last.buffers[0], expected)

    def test_one_signal_chunk_a_task(self, options):
        x = da.random.default_rng(0).random((4, 3, 12, 2), chunks=(1, 3, 2, 1))
        expected = ud.compute(*ud.run_udf(x, [SumUDF(), SumSigUDF()]), scheduler="synchronous")
        *_, last = ud.run_udf_iter(x, [SumUDF(), SumSigUDF()], **options)
        for found, wanted in zip(last.buffers, expected, strict=True):
            assert_same(found, wanted)

    @pytest.mark.parametrize("sig_dims", [1, 3, 4])
    def test_other_dimensions(self, values, sig_dims):
        x = da.from_array(values, chunks=2)
        expected = ud.run_udf(x, udf_zoo.Chain(), sig_dims=sig_dims).compute()
        *_, last = ud.run_udf_iter(x, udf_zoo.Chain(), sig_dims=sig_dims)
        assert_same(last.buffers[0], expected)
        assert last.damage.shape == values.shape[: 4 - sig_dims]
        assert last.damage.all()

    def test_other_ways_to_name_a_scheduler(self, x, cluster):
        expected = ud.run_udf(x, udf_zoo.Chain()).compute(scheduler="synchronous")

        def bare(dsk, keys, **kwargs):
            return dask.get(dsk, keys)

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for scheduler in (pool, dask.get, dask.threaded.get, cluster.get, bare):
                *_, last = ud.run_udf_iter(x, udf_zoo.Chain(), scheduler=scheduler)
                assert_same(last.buffers[0], expected)
            *_, last = ud.run_udf_iter(x, udf_zoo.Chain(), scheduler="threads", pool=pool)
            assert_same(last.buffers[0], expected)
        with dask.config.set(scheduler="synchronous"):
            iterator = ud.run_udf_iter(x, udf_zoo.Chain())
        assert_same(list(iterator)[-1].buffers[0], expected)
        with cluster.as_current():
            assert_same(list(ud.run_udf_iter(x, udf_zoo.Chain()))[-1].buffers[0], expected)
