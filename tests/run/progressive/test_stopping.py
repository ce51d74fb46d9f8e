"""Errors, and all ways to stop a run."""

import concurrent.futures
import signal
import subprocess
import sys
import threading

import dask.array as da
import numpy as np
import pytest

import progressive_udfs as pu
import udfdask as ud
from counting import counts
from failing_udfs import Fails, OwnError
from making import LATE
from progressive_cases import local, long_array, worker_of
from udfdask.udfs import SumUDF

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")


@pytest.mark.point(28)
class TestErrors:
    def test_before_anything_runs(self, x):
        with pytest.raises(ud.ArgumentValueError, match=r"'sum', which is not"):
            ud.run_udf_iter(x, SumUDF(), plots="sum")
        with pytest.raises(ValueError, match=r"Expected one of"):
            ud.run_udf_iter(x, SumUDF(), scheduler="threeds")

    @pytest.mark.parametrize("where", ["process_frame", "merge"])
    def test_keep_their_type_and_say_where(self, options, where):
        iterator = ud.run_udf_iter(long_array(20), Fails(where, row=3), **options)
        with pytest.raises(OwnError) as caught:
            list(iterator)
        assert f"raised in Fails.{where} at navigation coordinates (3, 0)" in str(
            caught.value.__notes__
        )
        assert list(iterator) == []

    def test_in_get_results_are_raised_to_the_reader(self, x):
        for snapshot in ud.run_udf_iter(x, Fails("get_results")):
            with pytest.raises(OwnError):
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
                waits.result(LATE)
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
                    waits.result(LATE)
                assert 1 <= caught.value.chunks_merged < 20
            (tmp_path / "go").touch()

    def test_cancelled_futures(self, client, tmp_path):
        iterator = ud.run_udf_iter(long_array(20), pu.Slow(tmp_path, row=1), scheduler=client)
        next(iterator)
        client.cancel(list(iterator._chunks._pending))
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
        thread.join(LATE)
        assert not thread.is_alive()
        assert len(gates.started) < 20

    @local
    @pytest.mark.skipif(sys.platform == "win32", reason="signals")
    def test_keyboard_interrupt(self, local, tmp_path):
        iterator = ud.run_udf_iter(long_array(), pu.Interrupts(tmp_path, row=5), **local)
        with pytest.raises(KeyboardInterrupt):
            list(iterator)
        thread = worker_of(iterator)
        thread.join(LATE)
        assert not thread.is_alive()
        assert list(iterator) == []
        assert counts(tmp_path)["run"] < 20

    @pytest.mark.skipif(sys.platform == "win32", reason="signals")
    def test_a_signal_handler_that_closes_ends_the_loop(self, tmp_path):
        iterator = ud.run_udf_iter(long_array(20), pu.Slow(tmp_path, row=1), scheduler="threads")
        before = signal.signal(signal.SIGALRM, lambda *_: iterator.close())
        try:
            next(iterator)
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            assert len(list(iterator)) < 19
            assert list(iterator) == []
        finally:
            signal.signal(signal.SIGALRM, before)
            (tmp_path / "go").touch()

    def test_an_executor_says_how_many_tasks_run(self):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            iterator = ud.run_udf_iter(long_array(20), SumUDF(), scheduler=pool)
            next(iterator)
            assert iterator._chunks._workers == 1
            iterator.close()

    @pytest.mark.parametrize("how", ["end", "close", "error"])
    def test_threads_end_with_the_run(self, monkeypatch, how):
        monkeypatch.setattr("udfdask.run.progressive.chunks.CPU_COUNT", 3)
        workers = set()

        def load(block):
            workers.add(threading.current_thread())
            if how == "error" and block.max() == 5:
                raise OSError("unreadable")
            return block

        x = long_array(20).map_blocks(load, meta=np.empty((0,) * 4, "int64"))
        iterator = ud.run_udf_iter(x, SumUDF(), scheduler="threads")
        next(iterator)
        if how == "close":
            iterator.close()
        elif how == "error":
            with pytest.raises(OSError, match="unreadable"):
                list(iterator)
        else:
            assert len(list(iterator)) == 19
        worker_of(iterator).join(LATE)
        assert 1 <= len(workers) <= 3
        for thread in workers:
            thread.join(LATE)
            assert not thread.is_alive()

    @pytest.mark.full
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
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=LATE, check=False
        )
        assert (run.returncode, run.stdout.strip(), run.stderr) == (0, "1", "")
