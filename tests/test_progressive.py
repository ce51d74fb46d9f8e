"""run_udf_iter: snapshots while a run goes on, on every scheduler."""

import asyncio
import concurrent.futures
import gc
import signal
import subprocess
import sys
import threading

import dask
import dask.array as da
import numpy as np
import pytest

import progressive_udfs as pu
import udf_zoo
import udfdask as ud
from aux_udfs import AUX_UDFS, SeenByMergeAll, SeenByTiles, SeenInTree, Shared, aux_of
from counting import CountedData, LiveData, counts
from udfdask.recipe import Recipe
from udfdask.shapes import Shape
from udfdask.udfs import NoOpUDF, SumSigUDF, SumUDF

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")

SHAPE = (6, 5, 4, 3)
CHUNKS = ((2, 1, 3), (3, 2), (4,), (2, 1))
ROI = np.random.default_rng(3).random(SHAPE[:2]) < 0.4


@pytest.fixture(scope="module")
def values():
    return np.random.default_rng(1).integers(-9, 9, size=SHAPE)


@pytest.fixture
def x(values):
    return da.from_array(values, chunks=CHUNKS)


def long_array(n=200, data=None):
    """So many chunks of one frame."""
    if data is not None:
        return da.from_array(data, chunks=(1, *data.shape[1:]), meta=np.empty((0,) * 4))
    rows = da.arange(n, chunks=1, dtype="int64")
    return da.broadcast_to(rows[:, None, None, None], (n, 1, 2, 2)).copy()


@pytest.fixture
def cluster(client):
    """The client of two processes, before and after which nothing is left on them."""
    return client


@pytest.fixture(scope="module")
def pool():
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        yield pool


@pytest.fixture(params=["synchronous", "threads", "processes", "distributed"])
def options(request):
    if request.param == "distributed":
        return {"scheduler": request.getfixturevalue("cluster")}
    if request.param == "processes":  # a pool takes seconds to start
        return {"scheduler": "processes", "pool": request.getfixturevalue("pool")}
    return {"scheduler": request.param, "num_workers": 2}


LOCAL = [{"scheduler": "synchronous"}, {"scheduler": "threads", "num_workers": 2}]
local = pytest.mark.parametrize("local", LOCAL, ids=["synchronous", "threads"])


def assert_same(found, expected):
    """Equal results, masks and rows: integers exactly, floats to rounding."""
    assert list(found) == list(expected)
    for name in expected:
        for a, b in [
            (found[name], expected[name]),
            (found.raw[name], expected.raw[name]),
            (found.valid_mask[name], expected.valid_mask[name]),
        ]:
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            if a.dtype.kind in "fc":
                np.testing.assert_allclose(a, b, rtol=1e-6)
            else:
                np.testing.assert_array_equal(a, b)


# MergeAllWhole says that its merge is never called; the median of MergeAllOnce is not merged
ZOO = [u for u in udf_zoo.ZOO if u not in (udf_zoo.MergeAllWhole, udf_zoo.MergeAllOnce)]
ZOO += [pu.OnlyMergeAll, pu.MedianOnce, NoOpUDF, SumSigUDF, SumUDF]


@pytest.mark.point(30)
class TestLastSnapshot:
    @pytest.mark.parametrize("roi", [None, ROI], ids=["all", "roi"])
    def test_of_the_zoo(self, x, options, roi):
        udfs = [cls() for cls in ZOO]
        expected = ud.compute(*ud.run_udf(x, udfs, roi=roi), scheduler="synchronous")
        iterator = ud.run_udf_iter(x, udfs, roi=roi, **options)
        snapshots = list(iterator)
        n_chunks = expected[0].explain().n_chunks
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

    def test_without_fusion(self, x):
        expected = ud.run_udf(x, udf_zoo.Chain()).compute(scheduler="synchronous")
        with dask.config.set({"optimization.fuse.active": False}):
            *_, last = ud.run_udf_iter(x, udf_zoo.Chain(), scheduler="threads")
        assert_same(last.buffers[0], expected)

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

    def test_persisted_on_a_cluster(self, x, cluster):
        kept = cluster.persist(x)
        *_, last = ud.run_udf_iter(kept, udf_zoo.Chain(), scheduler=cluster)
        assert_same(last.buffers[0], ud.run_udf(x, udf_zoo.Chain()).compute())


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
        """Read early or late, a snapshot says the same."""
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
        for one, other in zip(late, early, strict=True):  # both in order, since udfs has merge_all
            for a, b in zip(one.buffers, other.buffers, strict=True):
                assert_same(a, b)

    def test_a_reader_may_write(self, x):
        expected = ud.run_udf(x, udf_zoo.Chain()).compute()
        for snapshot in ud.run_udf_iter(x, udf_zoo.Chain()):
            for array in dict(snapshot.buffers[0]).values():
                last = array.copy()
                array[...] = 99
            del last
        *_, last = ud.run_udf_iter(x, udf_zoo.Chain())
        assert_same(last.buffers[0], expected)

    def test_writing_does_not_reach_the_run(self, x):
        expected = ud.run_udf(x, udf_zoo.Chain()).compute()
        n = expected.explain().n_chunks
        for k, snapshot in enumerate(ud.run_udf_iter(x, udf_zoo.Chain())):
            if k < n - 1:
                for array in dict(snapshot.buffers[0]).values():
                    array[...] = 99
        assert_same(snapshot.buffers[0], expected)

    def test_get_results_runs_once_and_only_when_read(self, x, tmp_path):
        udfs = [pu.CountsResults(tmp_path), udf_zoo.NavSums()]
        snapshots = list(ud.run_udf_iter(x, udfs, scheduler="synchronous"))
        _ = [s.damage for s in snapshots], [s.buffers[1]["sums"] for s in snapshots]
        assert not counts(tmp_path)
        for snapshot in snapshots[:3]:
            _ = snapshot.buffers[0]["sums"], snapshot.buffers[0].valid_mask["sums"]
            assert snapshot.buffers[0] is snapshot.buffers[-2]
        assert counts(tmp_path)["results"] == 3

    def test_what_buffers_is(self, x):
        snapshot = next(ud.run_udf_iter(x, [udf_zoo.NavSums(), SumUDF()]))
        assert len(snapshot.buffers) == 2
        assert [r.udf_name for r in snapshot.buffers] == ["NavSums", "SumUDF"]
        assert [r.udf_name for r in snapshot.buffers[:1]] == ["NavSums"]
        assert repr(snapshot) == "<Snapshot of NavSums, SumUDF: 1 of 6 chunks>"
        with pytest.raises(IndexError):
            snapshot.buffers[2]
        assert isinstance(snapshot.buffers[0].explain().n_chunks, int)

    def test_empty_roi(self, x, options):
        udfs = [udf_zoo.ResultsOfAll(), udf_zoo.NavSums(), pu.OnlyMergeAll(), pu.MedianOnce()]
        roi = np.zeros(SHAPE[:2], dtype=bool)
        (snapshot,) = ud.run_udf_iter(x, udfs, roi=roi, **options)
        assert not snapshot.damage.any()
        for found, wanted in zip(
            snapshot.buffers, ud.compute(*ud.run_udf(x, udfs, roi=roi)), strict=True
        ):
            assert_same(found, wanted)


@pytest.mark.point(28)
class TestOrder:
    def test_navigation_order_where_it_matters(self, options):
        x = long_array(30)
        expected = ud.run_udf(x, pu.Order()).compute(scheduler="synchronous")
        for n, snapshot in enumerate(ud.run_udf_iter(x, [pu.Order(), SumUDF()], **options), 1):
            assert snapshot.damage[:n].all()
            assert not snapshot.damage[n:].any()
        assert_same(snapshot.buffers[0], expected)

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
            gates.wait_for(6)  # what the window allows
            gates.open.set()
            thread.join(30)
            assert got[0].n_merged == 1
            assert len(gates.started) <= 6 + 4
        assert data.peak <= 8


@pytest.mark.point(28)
class TestProgress:
    @local
    def test_few_chunks_ahead(self, local):
        gates = pu.Gates("ahead")
        workers = local.get("num_workers", 1)
        with ud.run_udf_iter(long_array(), pu.Gated(gates.name), **local) as iterator:
            next(iterator)
            assert len(gates.started) < 20
            for n in range(2, 21):
                next(iterator)
                assert len(gates.started) <= n + 2 * workers + 1

    def test_few_chunks_ahead_of_a_consumer_that_waits(self, options, tmp_path):
        udf = pu.Scaled(1, folder=str(tmp_path))
        with ud.run_udf_iter(long_array(), udf, **options) as iterator:
            next(iterator)
            assert counts(tmp_path)["run"] <= 8

    @local
    def test_close_leaves_what_is_in_flight(self, local):
        gates = pu.Gates("close")
        iterator = ud.run_udf_iter(long_array(), pu.Gated(gates.name), **local)
        for _ in range(5):
            next(iterator)
        thread = worker_of(iterator)
        iterator.close()
        started = len(gates.started)
        thread.join(30)
        assert not thread.is_alive()
        assert len(gates.started) <= started + local.get("num_workers", 1)
        assert list(iterator) == []
        assert iterator.n_merged == 5

    def test_close_on_processes_and_clusters(self, options, tmp_path):
        udf = pu.Scaled(1, folder=str(tmp_path))
        iterator = ud.run_udf_iter(long_array(), udf, **options)
        for _ in range(5):
            next(iterator)
        iterator.close()
        assert next(iterator, None) is None
        assert len(list(ud.run_udf_iter(long_array(5), pu.Order(), **options))) == 5
        assert counts(tmp_path)["run"] <= 5 + 8

    @pytest.mark.parametrize("cls", [pu.Gated, pu.GatedAnyOrder])
    @local
    def test_memory_is_flat(self, local, cls):
        peaks = []
        for n in (50, 200):
            gates = pu.Gates(f"memory {n}")
            data = LiveData((n, 1, 2, 2))
            for _ in ud.run_udf_iter(long_array(data=data), cls(gates.name), **local):
                pass
            assert len(data.reads) == n
            assert set(data.reads.values()) == {1}
            peaks.append(data.peak)
        assert max(peaks) <= 2 * local.get("num_workers", 1) + 4

    def test_payloads_are_let_go(self):
        """The scheduler keeps none of what the consumer has merged."""
        n = 60
        x = long_array(n)
        gc.collect()
        gc.disable()  # nor does it take the garbage collector
        try:
            iterator = ud.run_udf_iter(x, SumUDF(), scheduler="threads", num_workers=2)
            alive = [sum(type(o).__name__ == "Partial" for o in gc.get_objects()) for _ in iterator]
        finally:
            gc.enable()
        assert max(alive) - min(alive) <= 8

    @pytest.mark.parametrize("shared", [False, True])
    def test_a_cluster_keeps_nothing(self, cluster, shared):
        def tasks(others=frozenset()):
            return cluster.run_on_scheduler(
                lambda dask_scheduler: {key for key in dask_scheduler.tasks if key not in others}
            )

        others = tasks()  # of tests before this one

        def wait_for_none():
            for _ in range(200):
                if not tasks(others):
                    return
                threading.Event().wait(0.05)
            raise AssertionError(f"left are {tasks(others)}")

        x = da.zeros((120, 1, 2, 2), chunks=(4 if shared else 1, 1, 2, 2))
        x = x.map_blocks(np.add, 1, dtype="float64").rechunk({0: 1})
        most = 0
        for snapshot in ud.run_udf_iter(x, SumUDF(), scheduler=cluster):
            if snapshot.n_merged % 40 == 5:
                most = max(most, len(tasks(others)))
        assert most < 40  # of 120 chunks, each a few tasks
        wait_for_none()
        iterator = ud.run_udf_iter(x, SumUDF(), scheduler=cluster)
        next(iterator)
        iterator.close()
        wait_for_none()

    def test_nothing_runs_before_it_is_asked_for(self, tmp_path):
        data = CountedData(np.zeros((4, 2, 2, 2)), tmp_path)
        x = da.from_array(data, chunks=(1, 2, 2, 2), meta=np.empty((0,) * 4))
        iterator = ud.run_udf_iter(x, SumUDF())
        assert not counts(tmp_path)
        iterator.close()
        assert list(iterator) == []
        assert not counts(tmp_path)


@pytest.mark.point(28)
class TestOnePass:
    def test_shared_upstream_runs_once(self, options, tmp_path):
        """Four chunks come out of each loaded block, and one of two blocks."""
        values = np.arange(24 * 4 * 4.0).reshape(24, 1, 4, 4)
        data = CountedData(values, tmp_path)
        x = da.from_array(data, chunks=(8, 1, 4, 4), meta=np.empty((0,) * 4)).rechunk({0: 3})
        udfs = [SumUDF(), udf_zoo.NavSums()]
        *_, last = ud.run_udf_iter(x, udfs, **options)
        assert counts(tmp_path) == {f"load-{row}-0-0-0": 1 for row in (0, 8, 16)}
        np.testing.assert_array_equal(last.buffers[0]["intensity"], values.sum(axis=(0, 1)))

    def test_all_udfs_share_it(self, options, tmp_path):
        data = CountedData(np.zeros((6, 2, 4, 4)), tmp_path)
        x = da.from_array(data, chunks=(2, 2, 4, 4), meta=np.empty((0,) * 4))
        list(ud.run_udf_iter(x, [SumUDF(), udf_zoo.NavSums(), pu.OnlyMergeAll()], **options))
        assert counts(tmp_path) == {f"load-{row}-0-0-0": 1 for row in (0, 2, 4)}

    def test_two_at_once(self, x, options):
        """Equal runs do not get into each other's way, nor do their parameters."""
        one = ud.run_udf_iter(x, pu.Scaled(1), **options)
        other = ud.run_udf_iter(x, pu.Scaled(1), **options)
        other.update_parameters([{"factor": 2}])
        *_, (a, b) = zip(one, other, strict=True)
        assert (a.buffers[0]["factor"] == 1).all()
        assert (b.buffers[0]["factor"] == 2).all()


@pytest.mark.point(29)
class TestParameters:
    def test_from_the_next_chunk_on(self, options):
        udf = pu.Scaled(1, step=1)
        iterator = ud.run_udf_iter(long_array(), [SumUDF(), udf], **options)
        for snapshot in iterator:
            n = snapshot.n_merged
            if n == 5:
                iterator.update_parameters([{}, {"factor": 2, "step": 1000}])
            if n == 50:
                iterator.update_parameters_experimental([{}, {"factor": 3}])
        factors = snapshot.buffers[1]["factor"].ravel()
        assert set(factors) == {1, 2, 3}
        assert 5 <= (factors == 1).sum() <= 5 + 8
        assert 45 - 8 <= (factors == 2).sum() <= 45 + 8
        assert snapshot.buffers[1]["steps"] == 5 + 195 * 1000
        assert udf.params.factor == 1

    @local
    def test_of_a_chunk_that_starts_later(self, local):
        """Not one chunk starts with the old ones once update_parameters has returned."""
        gates = pu.Gates("parameters")

        iterator = ud.run_udf_iter(long_array(40), pu.Sees(gates.name, 1), **local)
        for snapshot in iterator:
            if snapshot.n_merged == 4:
                iterator.update_parameters([{"value": 2}])
                before = len(gates.started)
        # the UDF's parameters are read just before it notes that it has started
        workers = local.get("num_workers", 1)
        assert (snapshot.buffers[0]["place"] == 1).sum() <= before + workers

    def test_before_the_first_chunk(self, x, options):
        iterator = ud.run_udf_iter(x, pu.Scaled(1), **options)
        iterator.update_parameters([{"factor": 5}])
        *_, last = iterator
        assert (last.buffers[0]["factor"] == 5).all()

    def test_heavy_ones(self, options):
        """Scattered, on a cluster."""
        x = da.ones((40, 1, 2, 2), chunks=(1, 1, 2, 2))
        table = np.zeros(300_000)
        table[0] = 1
        iterator = ud.run_udf_iter(x, pu.WithTable(table), **options)
        for snapshot in iterator:
            if snapshot.n_merged == 3:
                iterator.update_parameters([{"table": table * 2}])
        v = snapshot.buffers[0]["v"].ravel()
        assert set(v) == {4.0, 8.0}
        assert 3 <= (v == 4).sum() <= 3 + 8

    def test_lazy_ones(self, options):
        x = da.ones((6, 1, 2, 2), chunks=(2, 1, 2, 2))
        table = da.arange(4, chunks=2) + 1
        udf = pu.WithTable(table)
        expected = ud.run_udf(x, udf).compute(scheduler="synchronous")
        *_, last = ud.run_udf_iter(x, udf, **options)
        np.testing.assert_array_equal(last.buffers[0]["v"], expected["v"])
        # merged a chunk at a time here, in a tree there
        assert last.buffers[0]["total"] == 24 + 3 * 4
        mean = pu.WithTable(x.mean(axis=(0, 1)).ravel())  # of the data themselves
        *_, last = ud.run_udf_iter(x, mean, **options)
        assert (last.buffers[0]["v"] == 4).all()

    def test_a_lazy_one_that_is_replaced_is_not_computed(self, x):
        def explode(block):
            raise AssertionError("computed")

        table = da.ones(4).map_blocks(explode, dtype="float64", meta=np.empty(0))
        iterator = ud.run_udf_iter(x, pu.WithTable(table))
        iterator.update_parameters([{"table": np.ones(4)}])
        *_, last = iterator
        assert last.buffers[0]["v"].any()

    @pytest.mark.parametrize(
        ("changes", "error", "message"),
        [
            ([], ud.ArgumentValueError, r"expects 2 dictionaries.*got 0"),
            ([{}], ud.ArgumentValueError, r"expects 2 dictionaries.*got 1"),
            ([{}, {}, {}], ud.ArgumentValueError, r"got 3"),
            ({"n": 1}, ud.ArgumentTypeError, r"list with a dictionary for each UDF"),
            ([{"factor": 9}, {"nn": 1}], ud.ArgumentValueError, r"no parameter 'nn'.*'n'"),
            ([{"factor": 9}, {"n": 7}], ud.ArgumentValueError, r"declares another buffers"),
            ([{"factor": 9}, {"dtype": "complex64"}], ud.ArgumentValueError, r"input dtype"),
            ([{"factor": 9}, None], ud.ArgumentTypeError, r"must be a dictionary"),
            ([{"factor": 9}, {"n": da.ones(3)}], ud.ArgumentTypeError, r"compute it first"),
        ],
    )
    def test_mistakes_change_nothing(self, x, changes, error, message):
        iterator = ud.run_udf_iter(x, [pu.Scaled(1), pu.ParameterDecides(2)], scheduler="sync")
        next(iterator)
        with pytest.raises(error, match=message):
            iterator.update_parameters(changes)
        *_, last = iterator
        assert (last.buffers[0]["factor"] == 1).all()


def seen(shape, cls=SeenInTree, wrap=lambda a: a, **kwargs):
    return cls(**aux_of(Shape(shape, sig_dims=2), wrap), **kwargs)


@pytest.mark.point(29)
class TestAuxData:
    @pytest.mark.parametrize("lazy", [False, True])
    def test_right_part_in_every_hook(self, x, options, lazy):
        wrap = (lambda a: da.from_array(a, chunks=2)) if lazy else (lambda a: a)
        classes = [c for c in AUX_UDFS if c is not SeenByMergeAll]
        udfs = [seen(SHAPE, cls, wrap) for cls in classes]
        expected = ud.compute(*ud.run_udf(x, udfs, roi=ROI), scheduler="synchronous")
        *_, last = ud.run_udf_iter(x, udfs, roi=ROI, **options)
        for found, wanted in zip(last.buffers, expected, strict=True):
            assert_same(found, wanted)

    def test_by_merge_all(self, x):
        """Its merge is inherited, and used here."""
        for udf in (seen(SHAPE, SeenByMergeAll), seen(SHAPE, pu.SeenByMergeAllOnly)):
            *_, last = ud.run_udf_iter(x, udf, roi=ROI)
            assert_same(last.buffers[0], ud.run_udf(x, udf, roi=ROI).compute())

    def test_in_every_snapshot(self, x):
        """get_results checks all of them, those of frames that are still missing too."""
        for snapshot in ud.run_udf_iter(x, [seen(SHAPE), seen(SHAPE, SeenByTiles)], roi=ROI):
            _ = [dict(result) for result in snapshot.buffers]

    def test_of_a_run_over_the_same_data(self, x):
        level = ud.run_udf(x.astype("float64"), SumSigUDF())["intensity"]
        for values in (level, da.ones_like(level) * level.mean()):
            udf = pu.Dose(ud.UDF.aux_data(values, "nav", dtype="float64"))
            expected = ud.run_udf(x.astype("float64"), udf).compute(scheduler="synchronous")
            *_, last = ud.run_udf_iter(x.astype("float64"), udf)
            assert_same(last.buffers[0], expected)

    def test_updated(self, options):
        x = da.ones((60, 1, 2, 2), chunks=(1, 1, 2, 2))
        rows = np.arange(60.0)
        aux = ud.UDF.aux_data
        iterator = ud.run_udf_iter(x, pu.Dose(aux(rows, "nav", dtype="float64")), **options)
        for snapshot in iterator:
            if snapshot.n_merged == 5:
                new = aux(rows[:, None] + 1000, "nav", dtype="float64")
                iterator.update_parameters([{"dose": new}])
        dose = snapshot.buffers[0]["dose"].ravel()
        old = dose < 1000
        assert 5 <= old.sum() <= 5 + 8
        np.testing.assert_array_equal(dose, np.where(old, rows, rows + 1000))
        # what get_results sees is what the chunks have seen
        np.testing.assert_array_equal(snapshot.buffers[0]["again"].ravel(), dose)

    @pytest.mark.parametrize(
        ("change", "error", "message"),
        [
            ({"dose": np.ones(5)}, ud.ArgumentTypeError, r"is aux data: pass UDF.aux_data"),
            ({"dose": ud.UDF.aux_data(np.ones(5), "sig", dtype="f8")}, ValueError, r"must keep"),
            ({"dose": ud.UDF.aux_data(np.ones(7), "nav", dtype="f8")}, ValueError, r"shape \(7,\)"),
            (
                {"dose": ud.UDF.aux_data(da.ones(5), "nav", dtype="f8")},
                ud.ArgumentTypeError,
                r"compute it first",
            ),
            ({"other": ud.UDF.aux_data(np.ones(5), "nav", dtype="f8")}, TypeError, r"not aux data"),
        ],
    )
    def test_mistakes(self, change, error, message):
        x = da.ones((5, 1, 2, 2), chunks=(1, 1, 2, 2))
        udf = pu.Dose(ud.UDF.aux_data(np.zeros(5), "nav", dtype="float64"))
        iterator = ud.run_udf_iter(x, udf)
        with pytest.raises(error, match=message):
            iterator.update_parameters([change])
        *_, last = iterator
        assert not last.buffers[0]["dose"].any()


@local
def test_shared_task_data_follow_their_parameters(local, tmp_path):
    x = da.ones((60, 1, 2, 2), chunks=(1, 1, 2, 2))
    iterator = ud.run_udf_iter(x, Shared(str(tmp_path), np.ones(1)), **local)
    for snapshot in iterator:
        if snapshot.n_merged == 5:
            iterator.update_parameters([{"table": np.full(1, 3.0)}])
    v = snapshot.buffers[0]["v"].ravel()
    assert set(v) == {2.0, 6.0}
    assert 5 <= (v == 2).sum() <= 5 + 8
    assert counts(tmp_path)["shared"] == 2


@pytest.mark.point(28)
class TestErrors:
    def test_before_anything_runs(self, x):
        with pytest.raises(ValueError, match=r"empty list"):
            ud.run_udf_iter(x, [])
        with pytest.raises(ud.ArgumentTypeError, match=r"instance"):
            ud.run_udf_iter(x, SumUDF)
        with pytest.raises(ud.ArgumentValueError, match=r"live plots are not supported"):
            ud.run_udf_iter(x, SumUDF(), plots=True)
        with pytest.raises(ud.ArgumentTypeError, match=r"corrections"):
            ud.run_udf_iter(x, SumUDF(), corrections=1)
        with pytest.raises(ud.ArgumentTypeError, match=r"no argument 'rio'.*num_workers"):
            ud.run_udf_iter(x, SumUDF(), rio=ROI)
        with pytest.raises(ValueError, match=r"Expected one of"):
            ud.run_udf_iter(x, SumUDF(), scheduler="threeds")

    @pytest.mark.parametrize("where", ["process_tile", "merge"])
    def test_keep_their_type_and_say_where(self, options, where):
        iterator = ud.run_udf_iter(long_array(20), pu.Fails(where), **options)
        with pytest.raises(ZeroDivisionError, match=r"on purpose") as caught:
            list(iterator)
        assert f"raised in Fails.{where} at navigation coordinates (3, 0)" in str(
            caught.value.__notes__
        )
        assert list(iterator) == []

    def test_in_get_results_are_raised_to_the_reader(self, x):
        for snapshot in ud.run_udf_iter(x, pu.Fails("get_results")):
            with pytest.raises(ZeroDivisionError, match=r"on purpose"):
                snapshot.buffers[0]
        assert snapshot.damage.all()

    def test_in_loading(self, options):
        def broken(block, block_info=None):
            if block_info[0]["chunk-location"][0] == 2:
                raise OSError("unreadable")
            return block

        x = da.zeros((5, 1, 2, 2), chunks=(1, 1, 2, 2)).map_blocks(
            broken, dtype="float64", meta=np.empty((0,) * 4)
        )
        with pytest.raises(OSError, match=r"unreadable"):
            list(ud.run_udf_iter(x, SumUDF(), **options))


def worker_of(iterator):
    """The thread in which a local scheduler works for an iterator."""
    return iterator._chunks._thread


@pytest.mark.point(28)
class TestStopping:
    def test_close_while_another_thread_waits(self):
        gates = pu.Gates("cancel")
        udf = pu.GatedAnyOrder(gates.name, closed=(2, 3))
        iterator = ud.run_udf_iter(long_array(20), udf, scheduler="threads", num_workers=2)
        next(iterator), next(iterator)
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            waits = thread.submit(next, iterator)
            gates.wait_for(4)
            iterator.close()
            with pytest.raises(ud.UDFRunCancelled, match=r"after 2 of 20 chunks") as caught:
                waits.result(30)
            assert caught.value.chunks_merged == 2
        gates.open.set()
        assert list(iterator) == []

    def test_close_between_the_steps_of_another_thread(self, x):
        iterator = ud.run_udf_iter(x, SumUDF(), scheduler="synchronous")
        next(iterator)
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            thread.submit(iterator.close).result(30)
        with pytest.raises(ud.UDFRunCancelled, match=r"after 1 of 6"):
            next(iterator)

    def test_close_on_a_cluster_while_another_thread_waits(self, cluster, tmp_path):
        iterator = ud.run_udf_iter(long_array(20), pu.Slow(tmp_path, row=0), scheduler=cluster)
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            next(iterator)
            waits = thread.submit(list, iterator)
            iterator.close()
            with pytest.raises(ud.UDFRunCancelled):
                waits.result(30)
        (tmp_path / "go").touch()

    def test_a_client_that_goes_away(self, tmp_path):
        with distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster:
            client = distributed.Client(cluster, set_as_default=False)
            iterator = ud.run_udf_iter(long_array(20), pu.Slow(tmp_path, row=3), scheduler=client)
            with concurrent.futures.ThreadPoolExecutor(1) as thread:
                next(iterator)
                waits = thread.submit(list, iterator)
                client.close()
                with pytest.raises(ud.UDFRunCancelled) as caught:
                    waits.result(30)
                assert 1 <= caught.value.chunks_merged < 20
            (tmp_path / "go").touch()

    def test_cancelled_futures(self, cluster, tmp_path):
        iterator = ud.run_udf_iter(long_array(20), pu.Slow(tmp_path, row=1), scheduler=cluster)
        next(iterator)
        cluster.cancel(list(iterator._chunks._coming))
        with pytest.raises(ud.UDFRunCancelled, match=r"of 20 chunks"):
            list(iterator)
        (tmp_path / "go").touch()

    @local
    def test_no_longer_referenced(self, local):
        gates = pu.Gates("gone")
        iterator = ud.run_udf_iter(long_array(), pu.Gated(gates.name), **local)
        next(iterator)
        thread = worker_of(iterator)
        del iterator
        thread.join(30)
        assert not thread.is_alive()
        assert len(gates.started) < 20

    @local
    def test_break_out(self, local):
        gates = pu.Gates("break")
        before = threading.active_count()
        for snapshot in ud.run_udf_iter(long_array(), pu.Gated(gates.name), **local):
            if snapshot.n_merged == 3:
                break
        for thread in threading.enumerate():
            if thread.name == "udfdask-progressive":
                thread.join(30)
                assert not thread.is_alive()
        assert len(gates.started) < 20
        assert threading.active_count() <= before + 2

    @local
    @pytest.mark.skipif(sys.platform == "win32", reason="signals")
    def test_keyboard_interrupt(self, local, tmp_path):
        iterator = ud.run_udf_iter(long_array(), pu.Interrupts(tmp_path, row=5), **local)
        with pytest.raises(KeyboardInterrupt):
            list(iterator)
        thread = worker_of(iterator)
        thread.join(30)
        assert not thread.is_alive()
        assert list(iterator) == []
        assert counts(tmp_path)["run"] < 20

    def test_keyboard_interrupt_on_a_cluster(self, cluster, tmp_path):
        udf = pu.Slow(tmp_path, row=2)
        iterator = ud.run_udf_iter(long_array(), udf, scheduler=cluster)
        next(iterator)
        main = threading.main_thread()
        timer = threading.Timer(0.2, lambda: signal.pthread_kill(main.ident, signal.SIGINT))

        def read():
            timer.start()
            list(iterator)

        with pytest.raises(KeyboardInterrupt):
            read()
        (tmp_path / "go").touch()
        assert list(iterator) == []

    @pytest.mark.parametrize("scheduler", ["synchronous", "threads", "processes"])
    def test_python_ends_with_a_run_half_way(self, scheduler):
        code = f"""
import dask.array as da, udfdask as ud
from udfdask.udfs import SumUDF
if __name__ == "__main__":
    x = da.ones((50, 2, 4, 4), chunks=(1, 2, 4, 4))
    iterator = ud.run_udf_iter(x, SumUDF(), scheduler={scheduler!r}, num_workers=2)
    print(next(iterator).n_merged)
"""
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
        )
        assert (run.returncode, run.stdout.strip(), run.stderr) == (0, "1", "")


@pytest.mark.point(28)
class TestAsync:
    def test_async_for(self, x, options):
        expected = ud.run_udf(x, udf_zoo.Chain()).compute(scheduler="synchronous")

        async def last():
            async for snapshot in ud.run_udf_iter(x, udf_zoo.Chain(), **options):
                found = snapshot
            return found

        assert_same(asyncio.run(last()).buffers[0], expected)

    def test_await(self, x):
        async def last():
            return await ud.run_udf_iter(x, udf_zoo.Chain())

        assert asyncio.run(last()).damage.all()

    def test_the_loop_goes_on(self):
        """The gate is opened by another coroutine while one waits for the next snapshot."""
        gates = pu.Gates("loop")

        async def wait():
            udf = pu.Gated(gates.name, closed=(0,))
            return await ud.run_udf_iter(long_array(5), udf, scheduler="synchronous")

        async def main():
            task = asyncio.create_task(wait())
            while not gates.started:
                await asyncio.sleep(0)
            gates.open.set()
            return await task

        assert asyncio.run(main()).damage.all()

    def test_aclose(self, x):
        async def main():
            iterator = ud.run_udf_iter(x, SumUDF())
            found = []
            async for snapshot in iterator:
                found.append(snapshot)
                if len(found) == 2:
                    await iterator.aclose()
            return found

        assert len(asyncio.run(main())) == 2

    def test_cancelled_by_another_coroutine(self):
        gates = pu.Gates("async cancel")

        async def main():
            udf = pu.Gated(gates.name, closed=(2,))
            iterator = ud.run_udf_iter(long_array(9), udf, scheduler="synchronous")

            async def read():
                async for _ in iterator:
                    pass

            task = asyncio.create_task(read())
            while len(gates.started) < 3:
                await asyncio.sleep(0.001)
            await iterator.aclose()
            with pytest.raises(ud.UDFRunCancelled, match=r"after [012] of 9"):
                await task
            gates.open.set()

        asyncio.run(main())

    def test_a_cancelled_task_stops_the_run(self):
        gates = pu.Gates("task cancel")

        async def main():
            udf = pu.Gated(gates.name, closed=(1,))
            iterator = ud.run_udf_iter(long_array(50), udf, scheduler="synchronous")
            await anext(iterator)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(iterator), 0.05)
            gates.open.set()
            thread = worker_of(iterator)
            await asyncio.to_thread(thread.join, 30)
            assert not thread.is_alive()

        asyncio.run(main())
        assert len(gates.started) <= 3

    def test_errors(self):
        async def main():
            async for _ in ud.run_udf_iter(long_array(9), pu.Fails("process_tile")):
                pass

        with pytest.raises(ZeroDivisionError, match=r"on purpose"):
            asyncio.run(main())

    def test_asynchronous_client(self, x):
        async def main():
            async with (
                distributed.LocalCluster(
                    n_workers=1,
                    threads_per_worker=1,
                    processes=False,
                    dashboard_address=":0",
                    asynchronous=True,
                ) as cluster,
                distributed.Client(cluster, asynchronous=True) as client,
            ):
                return await ud.run_udf_iter(x, udf_zoo.Chain(), scheduler=client)

        expected = ud.run_udf(x, udf_zoo.Chain()).compute(scheduler="synchronous")
        assert_same(asyncio.run(main()).buffers[0], expected)


def test_the_recipe_is_what_a_pickled_live_one_becomes(x):
    import cloudpickle

    iterator = ud.run_udf_iter(x, pu.Scaled(1))
    iterator.update_parameters([{"factor": 4}])
    there = cloudpickle.loads(cloudpickle.dumps(iterator._live))
    assert isinstance(there, Recipe)
    assert there.udfs[0].kwargs["factor"] == 4
