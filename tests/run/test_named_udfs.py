"""A dictionary of UDFs gives a dictionary of results, through every entry point and in one pass."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from run_doors import DOORS, methods
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import SumUDF, VirtualDetectorUDF

DATA = np.random.default_rng(0).integers(0, 99, (4, 5, 6, 7))
X = da.from_array(DATA, chunks=(2, 5, 6, 7))
UDFS = {"BF": VirtualDetectorUDF("disk", r=2), "ADF": VirtualDetectorUDF("ring", ri=2, ro=3)}
EVERY = pytest.mark.parametrize("door", DOORS)


@EVERY
def test_results_bear_the_names(door):
    run = methods(door, X).run_udf
    with raise_if_dask_computes():
        named, listed = run(UDFS), run(list(UDFS.values()))
    assert type(named) is dict
    assert list(named) == ["BF", "ADF"]
    for result, other in zip(named.values(), listed, strict=True):
        assert type(result) is type(other)
        first, second = ud.compute(result["intensity"], other["intensity"])
        np.testing.assert_array_equal(first, second)
    (done,) = ud.compute(named)
    assert list(done) == ["BF", "ADF"]
    yy, xx = np.indices((6, 7))
    inside = (yy - 3) ** 2 + (xx - 3) ** 2 <= 4
    found = done["BF"]["intensity"]
    values = found.data if door == "hyperspy" else np.asarray(found)
    np.testing.assert_array_equal(values, DATA[..., inside].sum(axis=-1))


@EVERY
def test_snapshots_and_descriptions(door):
    runs = methods(door, X)
    *_, last = runs.run_udf_iter(UDFS, scheduler="synchronous")
    assert len(last.buffers) == len(UDFS)
    named, listed = runs.explain(UDFS), runs.explain(list(UDFS.values()))
    assert (named.n_tasks, named.memory) == (listed.n_tasks, listed.memory)
    assert "\nBF: VirtualDetectorUDF, process_tile on " in named.text
    assert "\ndetector  ADF: ring, ri = 2 px, ro = 3 px, center " in named.text
    assert "\nVirtualDetectorUDF 2: process_tile on " in listed.text
    assert "\ndetector  VirtualDetectorUDF 2: ring, " in listed.text


@pytest.mark.parametrize(
    ("udfs", "error"),
    [
        ({}, ValueError),
        ({"sum": SumUDF}, TypeError),
        ({SumUDF()}, TypeError),
    ],
    ids=["empty", "class", "set"],
)
@EVERY
def test_mistakes(door, udfs, error):
    for method in ("run_udf", "run_udf_iter", "explain"):
        with pytest.raises(error):
            getattr(methods(door, X), method)(udfs)


def test_a_name_may_be_a_topic_of_explanations():
    assert len(ud.explain(X, {"memory": SumUDF()}).summary.splitlines()) == 3
