"""The contents of snapshots, of the last one too, and the order in which chunks are merged."""

import concurrent.futures
import threading

import dask
import dask.array as da
import numpy as np
import pytest

import progressive_udfs as pu
import udf_zoo
import udfdask as ud
from counting import LiveData, counts
from making import LATE
from progressive_cases import CHUNKS, ROI, SHAPE, ZOO, assert_same, long_array
from udfdask.udfs import SumSigUDF, SumUDF

pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")


@pytest.mark.point(28)
class TestSnapshots:
    def test_damage_grows_and_masks_follow(self, x, options):
        before = 0
        for snapshot in ud.run_udf_iter(x, [udf_zoo.NavSums(), SumUDF()], roi=ROI, **options):
            damage = snapshot.damage
            assert damage.shape == ROI.shape
            assert damage.dtype == bool
            assert damage.sum() > before
            assert not damage[~ROI].any()
            before = damage.sum()
            sums = snapshot.buffers[0]
            np.testing.assert_array_equal(sums.valid_mask["sums"], damage)
            np.testing.assert_array_equal(sums.masked["sums"].mask, ~damage)
            assert not sums["sums"][ROI & ~damage].any()
            assert snapshot.buffers[1].valid_mask["intensity"].all()
        np.testing.assert_array_equal(damage, ROI)

    def test_each_is_right_for_its_damage(self, values, options):
        x = da.from_array(values, chunks=CHUNKS)
        udfs = [udf_zoo.NavSums(), udf_zoo.TileTree(), udf_zoo.Chain(), udf_zoo.ResultsOfAll()]
        for udf in [*udfs, udfs]:
            for snapshot in ud.run_udf_iter(x, udf, **options):
                for result in snapshot.buffers:
                    if "total" in result:
                        factor = 2 if "share" in result else 1
                        total = values[snapshot.damage].sum(axis=0) * factor
                        np.testing.assert_array_equal(result["total"], total)
                        assert result["count"] == snapshot.damage.sum()
                    if "sums" in result:
                        sums = np.where(snapshot.damage, values.sum(axis=(2, 3)), 0)
                        np.testing.assert_array_equal(result["sums"], sums)
                    if "seen" in result:
                        assert result["seen"] == snapshot.damage.sum()

    def test_merge_all_over_what_there_is(self, values):
        x = da.from_array(values, chunks=CHUNKS)
        sums = values.sum(axis=(2, 3))
        udfs = [pu.OnlyMergeAll(), pu.MedianOnce()]
        for snapshot in ud.run_udf_iter(x, udfs, scheduler="threads"):
            everything, median = snapshot.buffers
            damage = snapshot.damage
            np.testing.assert_array_equal(everything["total"], values[damage].sum(axis=0))
            for result in snapshot.buffers:
                np.testing.assert_array_equal(result["sums"], np.where(damage, sums, 0))
            assert median["median"] == np.median(sums[damage])

    def test_a_merge_all_that_is_not_associative_is_refused(self):
        with pytest.raises(ud.UDFError, match=r"not associative.*split_every=False"):
            list(ud.run_udf_iter(long_array(10), pu.MeanOfMeans(), scheduler="sync"))

    def test_valid_nav_mask(self, x):
        merged = []
        for snapshot in ud.run_udf_iter(x, pu.MaskSeen(), roi=ROI, scheduler="threads"):
            result = snapshot.buffers[0]
            assert result["seen"] == snapshot.damage.sum()
            np.testing.assert_array_equal(result["map"], snapshot.damage)
            assert result["chunks"] == snapshot.n_merged
            merged.append(snapshot.damage.sum())
        before = result["before"][ROI]
        assert set(before) == {0, *merged[:-1]}

    def test_does_not_change(self, x, options):
        """A snapshot has the same values whether it is read early or late."""
        udfs = [cls() for cls in (udf_zoo.ResultsOfAll, udf_zoo.NavSums, pu.OnlyMergeAll)]
        early, copies = [], []
        late = list(ud.run_udf_iter(x, udfs, **options))
        for snapshot in ud.run_udf_iter(x, udfs, **options):
            early.append(snapshot)
            copies.append([{k: r[k].copy() for k in r} for r in snapshot.buffers])
        for snapshot, copy in zip(early, copies, strict=True):
            for result, wanted in zip(snapshot.buffers, copy, strict=True):
                for name in wanted:
                    np.testing.assert_array_equal(result[name], wanted[name])
        for one, other in zip(late, early, strict=True):  # in order, because of merge_all
            assert_same(one.buffers, *other.buffers)

    def test_get_results_runs_once_and_only_when_read(self, x, tmp_path):
        udfs = [pu.CountsResults(tmp_path), udf_zoo.NavSums()]
        snapshots = list(ud.run_udf_iter(x, udfs, scheduler="synchronous"))
        _ = [s.damage for s in snapshots], [s.buffers[1]["sums"] for s in snapshots]
        assert not counts(tmp_path)
        for snapshot in snapshots[:3]:
            _ = snapshot.buffers[0]["sums"], snapshot.buffers[0].valid_mask["sums"]
            assert snapshot.buffers[0] is snapshot.buffers[-2]
        assert counts(tmp_path)["results"] == 3

    def test_empty_roi(self, x, options):
        udfs = [udf_zoo.ResultsOfAll(), udf_zoo.NavSums(), pu.OnlyMergeAll(), pu.MedianOnce()]
        roi = np.zeros(SHAPE[:2], dtype=bool)
        (snapshot,) = ud.run_udf_iter(x, udfs, roi=roi, **options)
        assert not snapshot.damage.any()
        assert_same(snapshot.buffers, *ud.compute(*ud.run_udf(x, udfs, roi=roi)))


@pytest.mark.point(28)
class TestOrder:
    def test_navigation_order_where_it_matters(self, options):
        x = long_array(30)
        expected = ud.run_udf(x, pu.Order()).compute(scheduler="synchronous")
        for n, snapshot in enumerate(ud.run_udf_iter(x, [pu.Order(), SumUDF()], **options), 1):
            assert snapshot.damage[:n].all()
            assert not snapshot.damage[n:].any()
        assert_same(snapshot.buffers[:1], expected)

    def test_a_slow_chunk_holds_nobody_up_where_it_does_not(self):
        gates = pu.Gates("any order")
        udf = pu.GatedAnyOrder(gates.name, closed=(0,))
        iterator = ud.run_udf_iter(long_array(40), udf, scheduler="threads", num_workers=2)
        for _ in range(39):
            snapshot = next(iterator)
        assert not snapshot.damage[0]
        gates.open.set()
        assert next(iterator).damage.all()
        assert list(iterator) == []

    def test_nothing_piles_up_behind_a_slow_chunk_where_it_does(self):
        gates = pu.Gates("order")
        data = LiveData((200, 1, 2, 2))
        x = long_array(data=data)
        udf = pu.Gated(gates.name, closed=(0,))
        with ud.run_udf_iter(x, udf, scheduler="threads", num_workers=2) as iterator:
            got = []
            thread = threading.Thread(target=lambda: got.append(next(iterator)))
            thread.start()
            gates.wait_for(6)  # the window allows this number
            gates.open.set()
            thread.join(LATE)
            assert got[0].n_merged == 1
            assert len(gates.started) <= 6 + 4
        assert data.peak <= 8


# The last snapshot equals the results of run_udf.


def check(x, udfs, how, **options):
    """Compare a run with snapshots, on the scheduler that `how` names, with one without."""
    expected = ud.compute(*ud.run_udf(x, udfs, **options), scheduler="synchronous")
    iterator = ud.run_udf_iter(x, udfs, **options, **how)
    snapshots = list(iterator)
    assert_same(snapshots[-1].buffers, *expected)
    return iterator, snapshots


@pytest.mark.point(30)
@pytest.mark.parametrize("roi", [None, ROI], ids=["all", "roi"])
def test_the_last_one_of_the_zoo(x, options, roi):
    udfs = [cls() for cls in ZOO]
    iterator, snapshots = check(x, udfs, options, roi=roi)
    n_chunks = ud.explain(x, udfs, roi=roi).n_chunks
    assert len(snapshots) == n_chunks == iterator.n_chunks == iterator.n_merged


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
