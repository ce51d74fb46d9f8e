"""Warnings about frames in several chunks: who is meant, which line, what helps, and how often."""

import functools
import re
import warnings
from uuid import uuid4

import dask
import dask.array as da
import numpy as np
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


class TestOnce:
    """A problem of the chunks is shown once for an array, if Python would show it once."""

    def shown(self, action, *calls):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter(action)
            for call in calls:
                call()
        return caught

    def array(self):
        # a name that no other test has
        return cut().map_blocks(lambda block: block, dtype="uint16", token=uuid4().hex)

    def test_many_functions(self):
        x = self.array()
        calls = [functools.partial(ud.map_frames, x, f) for f in (np.min, np.max, np.mean)]
        calls += [lambda: ud.run_udf(x, LogsumUDF()), lambda: x.udf.map_frames(peak)]
        (one,) = self.shown("default", *calls)
        assert "map_frames(min)" in str(one.message)

    def test_filters_come_first(self):
        x = self.array()
        call = functools.partial(ud.map_frames, x, peak)
        assert not self.shown("ignore", call)
        assert len(self.shown("default", call, call)) == 1
        assert len(self.shown("always", call, call)) == 2
        with pytest.raises(ud.UDFWarning):
            self.shown("error", call)
        assert not self.shown("default", call)  # although filters have changed
