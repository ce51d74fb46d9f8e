"""Every piece of advice: when it is given, and that who follows it needs no other."""

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask.advice import MakeChunks, Rechunk, SetOption
from udfdask.udfs import LogsumUDF, NeighborAverageUDF, SumUDF

CUT = da.zeros((4, 6, 64, 64), chunks=(2, 3, 16, 16), dtype="uint16")
THIN = da.zeros((64, 4, 4), chunks=(1, 4, 4))
SMALL = da.zeros((12_000, 2, 2), chunks=(1, 2, 2), dtype="uint8")


@pytest.mark.parametrize(
    ("array", "udf", "kind", "remedies"),
    [
        (CUT, LogsumUDF(), "cut frames", [MakeChunks]),
        (da.zeros((400, 8, 8), chunks=(400, 8, 8)), SumUDF(), "large tasks", [Rechunk]),
        (THIN, NeighborAverageUDF("rectangular", shape=(7,)), "thin chunks", [Rechunk]),
        (SMALL, SumUDF(), "small chunks", [SetOption]),
    ],
)
def test_kinds_of_advice(array, udf, kind, remedies, monkeypatch):
    monkeypatch.setattr("udfdask.explanation.costs.LITTLE_DATA", 0)
    if kind == "large tasks":
        monkeypatch.setattr("udfdask.base.config.worker_memory", lambda: 400_000)
    advice = {one.kind: one for one in ud.explain(array, udf).advice}
    assert [type(remedy) for remedy in advice[kind].remedies] == remedies


def test_small_chunks_of_a_region():
    x = da.zeros((12_000, 4, 64, 64), chunks=(1, 4, 64, 64), dtype="uint16")
    roi = np.zeros((12_000, 4), bool)
    roi[:11_000, 0] = True
    (advice,) = [a for a in ud.explain(x, SumUDF(), roi=roi).advice if a.kind == "small chunks"]
    assert advice.numbers["block"] == 4 * 64 * 64 * 2  # all frames of a chunk are loaded
    joined = ud.explain(x, SumUDF(), roi=roi, merge_small="64 MiB")
    assert advice.numbers["tasks"] == joined.n_chunks


@pytest.mark.parametrize("memory", ["64 MB", "200 MB", "2 GB"])
def test_who_follows_advice_gets_no_other_one(memory):
    small = da.zeros((12_000, 4, 64, 64), chunks=(1, 4, 64, 64), dtype="uint16")
    thin = da.zeros((49, 35, 512, 512), chunks=(1, 2, 512, 512), dtype="float32")
    with dask.config.set({"udfdask.worker-memory": memory}):
        (advice,) = ud.explain(small, SumUDF()).advice
        (remedy,) = advice.remedies
        assert not ud.explain(small, SumUDF(), merge_small=remedy.value).advice
        average = NeighborAverageUDF("rectangular")
        (advice,) = ud.explain(thin, average).advice
        (remedy,) = advice.remedies
        kinds = [one.kind for one in ud.explain(thin.rechunk(remedy.chunks), average).advice]
        assert "large tasks" not in kinds


def test_a_region_of_nothing():
    (advice,) = ud.explain(CUT, SumUDF(), roi=np.zeros((4, 6), bool)).advice
    assert advice.kind == "empty roi"
