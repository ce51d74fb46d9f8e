"""A computation with a time limit ends, and says which UDFs and chunks were running."""

import re
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import LATE
from stopping_udfs import DATA_CHUNKS, SHAPE, Hangs, Sums
from udfdask.scheduling.time_limit.deadline import innermost_user_line
from udfdask.udfs import SumUDF

CHUNK = r"Hangs and SumUDF on chunk \(1, 0\), navigation \[2:4, 0:2\]"


@pytest.fixture
def x():
    return da.ones(SHAPE, chunks=DATA_CHUNKS)


@pytest.fixture
def folder(tmp_path):
    yield str(tmp_path)
    (tmp_path / "go").touch()  # the threads of the tests end


def timed_out(run, pattern):
    """The error of `run(timeout)`: with more time, until the task that hangs has been reached."""
    for timeout in (0.5, 5, 25, 125):
        with pytest.raises(ud.RunTimeoutError) as found:
            run(timeout)
        if re.search(pattern, str(found.value), re.DOTALL):
            break
    found.match(pattern)
    return found


def by_compute(x, udfs, **options):
    return ud.compute(*ud.run_udf(x, udfs), **options)


def by_iterating(x, udfs, **options):
    *_, last = ud.run_udf_iter(x, udfs, **options)
    return last.buffers


RUNS = [by_compute, by_iterating]


@pytest.mark.parametrize("run", RUNS)
def test_a_task_hangs_in_a_thread(x, folder, run):
    udfs = [Hangs(folder=folder), SumUDF()]
    pattern = rf"{CHUNK}, at File \".*stopping_udfs\.py\", line \d+, in stop "
    found = timed_out(lambda timeout: run(x, udfs, timeout=timeout, scheduler="threads"), pattern)
    found.match(r"within timeout=[\d.]+ s")
    found.match(r"A running task cannot be stopped: its thread goes on")
    assert isinstance(found.value, TimeoutError)


@pytest.mark.full
@pytest.mark.parametrize("run", RUNS)
def test_a_task_hangs_in_a_process(x, folder, run):
    udfs = [Hangs(folder=folder), SumUDF()]
    options = {"scheduler": "processes", "num_workers": 2}
    if run is by_compute:
        options["chunksize"] = 1
    found = timed_out(lambda timeout: run(x, udfs, timeout=timeout, **options), CHUNK)
    found.match(r"the processes of the run have been ended")


@pytest.mark.parametrize("option", ["scheduler", "pool"])
def test_a_pool_of_the_user(x, folder, option):
    udfs = [Hangs(folder=folder), SumUDF()]
    with ThreadPoolExecutor(6) as pool:
        try:
            options = {"scheduler": "threads", option: pool}
            found = timed_out(
                lambda timeout: by_compute(x, udfs, timeout=timeout, **options), CHUNK
            )
            found.match(r"Running tasks go on in the pool that was passed to dask")
            result = by_compute(x, [Sums()], timeout=LATE, **options)[0]["sums"]
            np.testing.assert_array_equal(result, np.full((4, 4), 4.0))
        finally:
            (Path(folder) / "go").touch()


def test_synchronous_checks_between_tasks(x):
    began = threading.Event()

    class Slow(Sums):
        def process_frame(self, frame):
            began.wait(0.2)

    with pytest.raises(ud.RunTimeoutError, match=r"checks the time only between tasks"):
        by_compute(x, [Slow()], timeout=0.3, scheduler="synchronous")


@pytest.mark.parametrize("scheduler", ["synchronous", "threads", "processes"])
@pytest.mark.parametrize("run", RUNS)
def test_in_time(x, scheduler, run):
    udfs = [Sums(), SumUDF()]
    expected = run(x, udfs, scheduler="synchronous")
    for timeout in (LATE, "5 min"):
        results = run(x, udfs, scheduler=scheduler, timeout=timeout)
        np.testing.assert_array_equal(results[0]["sums"], expected[0]["sums"])
        np.testing.assert_array_equal(results[1]["intensity"], expected[1]["intensity"])


def test_an_error_of_a_udf_comes_before_the_time_limit(x):
    class Fails(Sums):
        def stop(self):
            raise TimeoutError("of the user")

    for scheduler in ("threads", "synchronous"):
        with pytest.raises(TimeoutError, match=r"of the user") as found:
            by_compute(x, [Fails()], scheduler=scheduler, timeout=LATE)
        assert not isinstance(found.value, ud.RunTimeoutError)


def test_progress_of_a_run_with_a_time_limit(x):
    states = []
    by_compute(x, [Sums()], scheduler="threads", timeout=LATE, progress=states.append)
    assert (states[-1].status, states[-1].num_frames_complete) == ("finished", 16)


def test_other_entry_points(x, folder, tmp_path):
    result = ud.run_udf(x, Hangs(folder=folder))
    alone = r"Hangs on chunk \(1, 0\)"
    timed_out(lambda timeout: result.compute(timeout=timeout, scheduler="threads"), alone)
    pytest.importorskip("zarr")
    pytest.importorskip("xarray")
    path = tmp_path / "found.zarr"
    timed_out(lambda timeout: result.to_zarr(path, timeout=timeout, scheduler="threads"), alone)
    assert not (tmp_path / "found.zarr").exists()


@pytest.mark.parametrize(
    "timeout", [0, -1, "soon", "", True, "10 parsecs", float("nan"), float("inf")]
)
def test_a_time_limit_that_is_none(x, timeout):
    with pytest.raises(ud.ArgumentValueError, match=r"timeout must be a positive number"):
        ud.run_udf(x, Sums()).compute(timeout=timeout)
    with pytest.raises(ud.ArgumentValueError, match=r"timeout must be a positive number"):
        ud.run_udf_iter(x, Sums(), timeout=timeout)


def test_a_time_limit_of_another_type(x):
    with pytest.raises(ud.ArgumentTypeError, match=r"timeout must be .* not \[\]"):
        ud.run_udf(x, Sums()).compute(timeout=[])


def test_a_scheduler_that_is_not_dasks(x):
    def mine(dsk, keys, **_):
        return dask.get(dsk, keys)

    with pytest.raises(ud.ArgumentValueError, match=r"timeout= works on the schedulers of dask"):
        ud.run_udf(x, Sums()).compute(timeout=LATE, scheduler=mine)


@pytest.mark.full
def test_python_ends_while_a_thread_hangs(tmp_path):
    """Nobody waits for the thread, whatever it does."""
    code = f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parents[2] / "support")!r})
        import dask.array as da, udfdask as ud
        from stopping_udfs import *
        x = da.ones(SHAPE, chunks=DATA_CHUNKS)
        udf = Hangs(folder={str(tmp_path)!r})
        for run in (lambda t: ud.run_udf(x, udf).compute(timeout=t),
                    lambda t: list(ud.run_udf_iter(x, udf, timeout=t))):
            for timeout in (2, 20, {LATE}):
                try:
                    run(timeout)
                except ud.RunTimeoutError as error:
                    if "chunk (1, 0)" in str(error):
                        print(True)
                        break
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LATE, check=True)
    assert done.stdout.split() == ["True", "True"]
    assert not (tmp_path / "go").exists()


SOURCES = {
    "listed": lambda: da.from_array(np.ones(SHAPE), chunks=DATA_CHUNKS),
    "rechunked": lambda: da.ones(SHAPE, chunks=(4, 4, 2, 2)).rechunk(DATA_CHUNKS),
    "fused": lambda: da.from_delayed(dask.delayed(np.ones)(SHAPE), SHAPE, "f8").rechunk(
        DATA_CHUNKS
    ),
    "sliced": lambda: da.ones((6, 4, 2, 2), chunks=DATA_CHUNKS)[:4, ::1],
    "long name": lambda: (
        da.ones(SHAPE, chunks=DATA_CHUNKS)
        .map_blocks(np.add, 1, name="a-name-of-many-letters-that-dask-cuts-when-it-joins-names")
        .rechunk((1, 1, 2, 2))
        .rechunk(DATA_CHUNKS)
    ),
    "signal chunks": lambda: da.ones(SHAPE, chunks=(2, 2, 1, 2)),
}


@pytest.mark.parametrize("source", SOURCES)
def test_chunks_of_every_kind_of_graph(source, folder):
    x, udfs = SOURCES[source](), [Hangs(folder=folder), SumUDF()]
    timed_out(lambda timeout: by_compute(x, udfs, timeout=timeout, scheduler="threads"), CHUNK)


@pytest.mark.parametrize(
    ("method", "words"),
    [("merge", r"merge of Late"), ("get_results", r"Late\.get_results")],
)
def test_tasks_after_the_chunks(x, method, words):
    go = threading.Event()

    class Late(Sums):
        def get_result_buffers(self):
            return {"total": self.buffer("sig", dtype="float64")}

        def process_frame(self, frame):
            self.results.total[:] += frame

        def merge(self, dest, src):
            if method == "merge":
                go.wait()
            dest.total += src.total

        def get_results(self):
            if method == "get_results":
                go.wait()
            return {"total": self.results.total}

    try:
        pattern = rf"{words}, at .*in {method}"
        timed_out(lambda t: by_compute(x, [Late()], timeout=t, scheduler="threads"), pattern)
    finally:
        go.set()


def test_loading_that_hangs():
    go = threading.Event()

    def load(block, block_info=None):
        if block_info[None]["chunk-location"][:2] == (1, 0):
            go.wait()
        return block

    x = da.ones(SHAPE, chunks=DATA_CHUNKS).map_blocks(load, dtype="float64")
    try:
        pattern = r"chunk \(1, 0\), navigation.*in load go"
        timed_out(lambda t: by_compute(x, [Sums()], timeout=t, scheduler="threads"), pattern)
    finally:
        go.set()


def test_the_line_of_the_user():
    def frame(path):
        return f'  File "{path}", line 3, in f\n    call()\n'

    ours = frame(ud.__file__)
    installed = frame("/usr/lib/python3.13/site-packages/numpy/core.py")
    mine, other = frame("/home/me/analysis.py"), frame("/home/me/tools.py")
    assert innermost_user_line([other, ours, mine, installed]).split('"')[1].endswith("analysis.py")
    assert innermost_user_line([ours, mine, other]).split('"')[1].endswith("tools.py")
    assert "numpy" in innermost_user_line([other, ours, installed])
    assert innermost_user_line([other, ours]).split('"')[1] == ud.__file__
    assert not innermost_user_line([])
