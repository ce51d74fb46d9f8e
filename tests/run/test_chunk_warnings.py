"""Warnings about frames in several chunks: who is meant, which line, what helps."""

import re

import dask
import dask.array as da
import pytest

import udfdask as ud
from run_doors import DATA
from udfdask.geometry.good_chunks import good_chunks
from udfdask.udfs import LogsumUDF

SHAPE, CHUNKS = (4, 6, 8, 8), (2, 3, 2, 4)


@pytest.fixture(autouse=True)
def small_is_large(warns_of_few_data):
    """Chunks of a few hundred bytes count as large ones, and small data as many."""
    with dask.config.set({"array.chunk-size": "1 kiB"}):
        yield


def peak(frame):
    return frame.max()


def two(frame):
    return frame.max(), frame.min()


def cut():
    return da.zeros(SHAPE, chunks=CHUNKS, dtype="uint16")


RUNS = {
    "map_frames(peak)": lambda data: data.udf.map_frames(peak),
    "map_frames(two)": lambda data: data.udf.map_frames(two, output_names=("high", "low")),
    "LogsumUDF": lambda data: data.udf.run_udf(LogsumUDF()),
    "LogsumUDF ": lambda data: data.udf.run_udf_iter(LogsumUDF()),
}


def caught_from(call):
    with pytest.warns(ud.UDFWarning) as caught:
        call()
    (one,) = caught
    return one


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("size", ["1 kiB", "1 MiB", "100 B"])
def test_the_line_the_function_and_the_cure(kind, run, size):
    data = DATA[kind](cut())
    with dask.config.set({"array.chunk-size": size}):
        warning = caught_from(lambda: RUNS[run](data))
        advice = cut().rechunk(good_chunks(cut().chunks, 2, cut().dtype.itemsize))
    assert warning.filename == __file__
    assert warning.lineno == RUNS[run].__code__.co_firstlineno
    text = str(warning.message)
    assert f"because {run.strip()} cannot process one signal chunk" in text
    assert "AutoUDF" not in text
    name = "signal" if kind == "hyperspy" else "array"
    (cure,) = re.findall(rf"{name}\.\w+\(.*\)$", text)
    made = eval(cure, {name: data})  # what a user would type; signals change in place
    better = data if made is None else made
    array = getattr(better, "data", better) if kind != "dask" else better
    assert array.chunks == advice.chunks
    assert len(array.chunks[0]) == {"1 kiB": 2, "1 MiB": 1, "100 B": 4}[size]
    assert str(tuple(map(max, array.chunks[:2])))[1:-1] in text or kind == "xarray"
    RUNS[run](better)  # without a warning
