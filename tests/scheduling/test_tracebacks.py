"""What users see when their code fails: the lines of their own files, and nothing is lost."""

import asyncio
import traceback
from pathlib import Path

import dask
import dask.array as da
import pytest

import udfdask as ud
from failing_udfs import Fails, OwnError, fail_on_data

X = da.ones((4, 3, 5, 5), chunks=(1, 3, 5, 5)) + 1
PACKAGE = Path(ud.__file__).parent

CALLS = {
    "Result.compute": lambda result, **how: result.compute(**how),
    "udfdask.compute": lambda result, **how: ud.compute([result], **how),
    "dask.compute": dask.compute,
    "an array": lambda result, **how: result["mean"].compute(**how),
}
METHODS = ["preprocess", "process_frame", "postprocess", "merge", "get_results"]
# Frisky sends exceptions without their tracebacks, which its workers print
SENDS_TRACEBACKS = pytest.mark.parametrize(
    "options", ["synchronous", "threads", "processes", "distributed"], indirect=True
)


def functions_of(error):
    """Names of the functions in a traceback, from the caller on."""
    return [line.name for line in traceback.extract_tb(error.__traceback__)]


def own_lines(error):
    """Names of the functions of udfdask in a traceback."""
    lines = traceback.extract_tb(error.__traceback__)
    return [line.name for line in lines if PACKAGE in Path(line.filename).parents]


@SENDS_TRACEBACKS
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("call", CALLS)
def test_only_the_lines_of_the_user_are_shown(options, call, method):
    result = ud.run_udf(X, Fails(method))
    with pytest.raises(OwnError) as caught:
        CALLS[call](result, **options)
    error = caught.value
    assert type(error) is OwnError
    first, *between, caller, check, last = functions_of(error)
    assert first == "test_only_the_lines_of_the_user_are_shown"
    assert [caller, check, last] == [method, "check", "raise_own_error"]
    assert not own_lines(error)
    if call in ("Result.compute", "udfdask.compute"):
        assert between == ["<lambda>"]  # the one of this file
    (note,) = error.__notes__
    assert note.startswith(f"raised in Fails.{method} ")


@SENDS_TRACEBACKS
@pytest.mark.parametrize("method", METHODS)
def test_of_a_progressive_run(options, method):
    def watch():
        for snapshot in ud.run_udf_iter(X, Fails(method), **options):
            snapshot.buffers[0]["mean"]

    with pytest.raises(OwnError) as caught:
        watch()
    expected = [method, "check", "raise_own_error"]
    assert functions_of(caught.value)[1:] == ["watch", *expected]

    async def watch_it():
        async for snapshot in ud.run_udf_iter(X, Fails(method), **options):
            snapshot.buffers[0]["mean"]

    with pytest.raises(OwnError) as caught:
        asyncio.run(watch_it())
    assert functions_of(caught.value)[-3:] == expected
    assert not own_lines(caught.value)


def test_of_a_function_and_of_other_ways_to_compute(tmp_path):
    mapped = ud.map_frames(X, fail_on_data)
    total = ud.run_udf(X, Fails("process_frame"))
    for compute in (
        mapped.compute,
        lambda: ud.compute(mapped),
        lambda: ud.compute(total, cache=tmp_path / "cache"),
        lambda: total.to_zarr(tmp_path / "total.zarr"),
        ud.run_udf(X, Fails("process_frame", size=9)).plot,
        total.persist,
    ):
        with pytest.raises(OwnError) as caught:
            compute()
        assert functions_of(caught.value)[-1] == "raise_own_error"
        assert not own_lines(caught.value)


def test_a_bug_of_udfdask_keeps_all_lines(monkeypatch):
    """A report of a bug needs them."""

    def broken(*args):
        raise RuntimeError("a bug")

    monkeypatch.setattr("udfdask.chunk.run_chunk.process", broken)
    with pytest.raises(RuntimeError, match="a bug") as caught:
        ud.run_udf(X, Fails("nothing")).compute(scheduler="synchronous")
    assert {"compute", "run_chunk", "_run_block"} <= set(own_lines(caught.value))
