"""The notes about detectors in the text of results."""

import pickle

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import SYNC
from udf_zoo import Chain
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import CoMUDF, SumUDF

X = da.ones((4, 6, 32, 32), chunks=(2, 3, 32, 32), dtype="uint16")
UNITS = [("y", None, 1, 0), ("x", None, 1, 0), ("ky", "mrad", 0.5, 0), ("kx", "mrad", 0.5, 0)]
AXES = [ud.Axis(name=n, unit=u, scale=s, offset=o) for n, u, s, o in UNITS]
MIDDLE, IN_PIXELS = ud.run_udf(X, CoMUDF(r=8), axes=AXES).explain().notes


def notes(result):
    """The notes in the text of a result."""
    shown = [line for line in repr(result).splitlines() if line.startswith("  note  ")]
    return [line.removeprefix("  note  ") for line in shown]


def test_a_lazy_result_shows_the_notes_of_explain():
    result = ud.run_udf(X, CoMUDF(r=8), axes=AXES)
    with raise_if_dask_computes():
        assert notes(result) == [MIDDLE, IN_PIXELS]
    assert "the center is the middle of the frame, y 16, x 16 px" in MIDDLE
    assert "write r='8 mrad'" in IN_PIXELS
    assert notes(ud.run_udf(X, CoMUDF(r="4 mrad", center="middle"), axes=AXES)) == []
    assert notes(ud.run_udf(X, SumUDF(), axes=AXES)) == []


def test_a_computed_result_shows_them_too():
    result = ud.run_udf(X, CoMUDF(r=8), axes=AXES)
    done = result.compute(**SYNC)
    for each in (done, pickle.loads(pickle.dumps(done)), dask.compute(result, **SYNC)[0]):
        assert notes(each) == [MIDDLE, IN_PIXELS]


def test_each_of_several_udfs_shows_its_own_notes():
    udfs = {"com": CoMUDF(r=8), "sum": SumUDF(), "a": Chain(), "b": Chain(big=np.ones(1 << 18))}
    results = ud.run_udf(X, udfs, axes=AXES)
    assert notes(results["com"]) == [f"com: {MIDDLE}", f"com: {IN_PIXELS}"]
    assert [notes(results[name]) for name in ("sum", "a", "b")] == [[]] * 3
    every = results["sum"].explain().notes
    assert every[:2] == (f"com: {MIDDLE}", f"com: {IN_PIXELS}")
    assert "merges run one after another" in every[2]
    assert "parameters of 2.00 MiB" in every[3]
    assert len(every) == 4


def test_a_signal_result_shows_them():
    hs = pytest.importorskip("hyperspy.api")
    import udfdask.hyperspy  # noqa: F401

    signal = hs.signals.Signal2D(X).as_lazy()
    for axis, (_, unit, scale, offset) in zip(
        signal.axes_manager.signal_axes, UNITS[:1:-1], strict=True
    ):
        axis.units, axis.scale, axis.offset = unit, scale, offset
    result = signal.udf.run_udf(CoMUDF(r=8))
    assert repr(result).splitlines()[-2:] == [f"  note  {MIDDLE}", f"  note  {IN_PIXELS}"]
    in_memory = result.compute(**SYNC)
    assert repr(in_memory).splitlines()[-2:] == [f"  note  {MIDDLE}", f"  note  {IN_PIXELS}"]
