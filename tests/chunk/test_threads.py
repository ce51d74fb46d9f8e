"""Law 12: libraries keep to a task's share of threads; their old limits are restored."""

import sys
import threading
import time
from collections.abc import Iterator
from types import ModuleType

import dask
import dask.array as da
import numba
import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

import udfdask as ud
from making import LATE, wait_until
from udfdask.chunk import task_context
from udfdask.chunk.task_context import ThreadLimiter, limiter

np.ones((2, 2)) @ np.ones((2, 2))  # loads BLAS
WHOLE = 2  # what the libraries are set to outside of tasks: more than a task's share of 1


def blas_threads() -> list[int]:
    """Threads of the BLAS libraries of this process."""
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    return [library.get_num_threads() for library in found]


@pytest.fixture(autouse=True)
def whole() -> Iterator[None]:
    """Libraries at a known number of threads, and back at it after the test."""
    if not blas_threads():
        pytest.skip("no BLAS library that threadpoolctl knows")
    with threadpool_limits(WHOLE, user_api="blas"):
        if set(blas_threads()) != {WHOLE}:
            pytest.skip(f"this BLAS cannot use {WHOLE} threads")
        yield
        assert set(blas_threads()) == {WHOLE}


class Meet(ud.UDF):
    """Waits in each task for the others, so that they overlap, and notes the limits."""

    def __init__(self, barrier=None):
        super().__init__(barrier=barrier)

    def get_result_buffers(self):
        names = ("before", "after", "numba", "meta")
        return {name: self.buffer(kind="nav", dtype="int64") for name in names}

    def process_partition(self, partition):
        self.results.before = max(blas_threads())
        if self.params.barrier is not None:
            BARRIERS[self.params.barrier].wait(timeout=LATE)
            if self.meta.coordinates[0, 0] % 2:
                time.sleep(0.05)  # one task goes while its neighbor is still at work
        self.results.after = max(blas_threads())
        self.results.numba = numba.get_num_threads()
        self.results.meta = self.meta.threads_per_worker


BARRIERS: dict[str, threading.Barrier] = {}


@pytest.fixture
def x() -> da.Array:
    return da.ones((8, 4, 4), chunks=(1, 4, 4), dtype="float32")


def test_overlapping_tasks(x):
    """Two at a time, the second still at work when the first one leaves: never more than one."""
    BARRIERS["two"] = threading.Barrier(2)
    done = ud.run_udf(x, Meet("two")).compute(scheduler="threads", num_workers=2)
    for name in ("before", "after", "numba", "meta"):
        assert done[name].tolist() == [1] * 8, name
    assert set(blas_threads()) == {WHOLE}


@pytest.mark.parametrize("share", [1, 2])
def test_config(x, share):
    with dask.config.set({"udfdask.threads-per-task": share}):
        done = ud.run_udf(x, Meet()).compute(scheduler="synchronous")
    for name in ("before", "after", "meta"):
        assert set(done[name]) == {share}
    assert set(done["numba"]) == {min(share, numba.config.NUMBA_NUM_THREADS)}


def test_limits_in_merge_and_get_results(x):
    class Sees(ud.UDF):
        def get_result_buffers(self):
            return {
                "merge": self.buffer(kind="single", dtype="int64"),
                "results": self.buffer(kind="single", dtype="int64", use="result_only"),
            }

        def process_frame(self, frame):
            pass

        def merge(self, dest, src):
            dest.merge = max(int(dest.merge[0]), int(src.merge[0]), *blas_threads())

        def get_results(self):
            return {"results": max(blas_threads())}

    done = ud.run_udf(x, Sees()).compute(scheduler="synchronous")
    assert (done["merge"], done["results"]) == (1, 1)


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_restored_after_an_error(x, scheduler):
    class Raises(Meet):
        def process_partition(self, partition):
            raise RuntimeError("stop")

    before = numba.get_num_threads()
    with pytest.raises(RuntimeError, match=r"stop"):
        ud.run_udf(x, Raises()).compute(scheduler=scheduler)
    wait_until(lambda: limiter._inside == 0)  # dask's other threads are on their way out
    assert set(blas_threads()) == {WHOLE}
    assert numba.get_num_threads() == before


@pytest.mark.parametrize(("first", "second"), [(1, 1), (2, 1), (1, 2)])
def test_overlapping_but_not_nested(first, second):
    """First in, second in, first out, second out."""
    own = ThreadLimiter()
    a, b = own.limit(first), own.limit(second)
    a.__enter__()
    b.__enter__()
    assert max(blas_threads()) <= min(first, second)
    a.__exit__(None, None, None)
    assert max(blas_threads()) <= second
    b.__exit__(None, None, None)
    assert set(blas_threads()) == {WHOLE}


def test_never_raises_a_limit():
    with threadpool_limits(1, user_api="blas"):
        with ThreadLimiter().limit(8):
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}


def test_numba_of_another_thread_is_left_alone():
    """numba's count belongs to a thread."""
    if numba.config.NUMBA_NUM_THREADS < 2:
        pytest.skip("numba has one thread only")
    numba.set_num_threads(2)
    entered, leave = threading.Event(), threading.Event()
    seen = []

    def work():
        with limiter.limit(1):
            seen.append(numba.get_num_threads())
            entered.set()
            leave.wait(LATE)

    thread = threading.Thread(target=work)
    thread.start()
    assert entered.wait(LATE)
    assert numba.get_num_threads() == 2
    leave.set()
    thread.join()
    assert seen == [1]


def test_libraries_are_searched_only_after_imports(monkeypatch):
    """A task of a millisecond must not feel the limit; the search takes several."""
    searches = []

    def search():
        searches.append(len(sys.modules))
        return ThreadpoolController()

    monkeypatch.setattr(task_context, "ThreadpoolController", search)
    own = ThreadLimiter()
    for n_imports in (1, 2):
        monkeypatch.setitem(sys.modules, f"imported_{n_imports}", ModuleType("imported"))
        for _ in range(2):
            with own.limit(1):
                assert len(searches) == n_imports
