"""A run stays a few chunks ahead of its consumer, and keeps no payloads."""

import dask.array as da
import numpy as np
import pytest

import progressive_udfs as pu
import udf_zoo
import udfdask as ud
from counting import CountedData, LiveData, counts
from making import LATE, wait_until
from progressive_cases import local, long_array, worker_of
from udfdask.udfs import SumUDF

pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")


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
                # `workers - 1` computed chunks may wait; if the next one is slow, the other threads
                # go on for a window of `2 * workers + 2` chunks from it
                assert len(gates.started) <= n + workers - 1 + 2 * workers + 2

    @local
    def test_close_leaves_what_is_in_flight(self, local):
        gates = pu.Gates("close")
        iterator = ud.run_udf_iter(long_array(), pu.Gated(gates.name), **local)
        for _ in range(5):
            next(iterator)
        thread = worker_of(iterator)
        iterator.close()
        started = len(gates.started)
        thread.join(LATE)
        assert not thread.is_alive()
        assert len(gates.started) <= started + local.get("num_workers", 1)
        assert list(iterator) == []
        assert iterator.n_merged == 5

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

    @pytest.mark.full
    @pytest.mark.parametrize("shared", [False, True])
    def test_a_cluster_keeps_nothing(self, client, shared):
        def tasks(others=frozenset()):
            return client.run_on_scheduler(
                lambda dask_scheduler: {key for key in dask_scheduler.tasks if key not in others}
            )

        others = tasks()  # left over from earlier tests

        x = da.zeros((120, 1, 2, 2), chunks=(4 if shared else 1, 1, 2, 2))
        x = x.map_blocks(np.add, 1, dtype="float64").rechunk({0: 1})
        most = 0
        for snapshot in ud.run_udf_iter(x, SumUDF(), scheduler=client):
            if snapshot.n_merged % 40 == 5:
                most = max(most, len(tasks(others)))
        assert most < 40  # of 120 chunks, each a few tasks
        wait_until(lambda: not tasks(others))
        iterator = ud.run_udf_iter(x, SumUDF(), scheduler=client)
        next(iterator)
        iterator.close()
        wait_until(lambda: not tasks(others))

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
        """Each loaded block feeds four chunks, and one chunk needs two blocks."""
        values = np.arange(24 * 4 * 4.0).reshape(24, 1, 4, 4)
        data = CountedData(values, tmp_path)
        x = da.from_array(data, chunks=(8, 1, 4, 4), meta=np.empty((0,) * 4)).rechunk({0: 3})
        udfs = [SumUDF(), udf_zoo.NavSums(), pu.OnlyMergeAll()]
        *_, last = ud.run_udf_iter(x, udfs, **options)
        assert counts(tmp_path) == {f"load-{row}-0-0-0": 1 for row in (0, 8, 16)}
        np.testing.assert_array_equal(last.buffers[0]["intensity"], values.sum(axis=(0, 1)))
