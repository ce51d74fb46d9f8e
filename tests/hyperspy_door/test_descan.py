"""Shifts of frames that are signals."""

import dask.array as da
import hyperspy.api as hs
import numpy as np
import pytest

import udfdask as ud
import udfdask.hyperspy
from udfdask.descan import Descan
from udfdask.udfs import CoMUDF, SumUDF

DATA = np.random.default_rng(0).integers(0, 99, (4, 5, 6, 7)).astype("uint16")
SHIFTS = np.random.default_rng(1).uniform(-2, 2, (4, 5, 2))
X = da.from_array(DATA, chunks=(2, 3, 6, 7))
RIGHT = ud.run_udf(X, SumUDF(), descan=SHIFTS)["intensity"].compute()
SIGNAL = hs.signals.Signal2D(X).as_lazy()
SHIFT_SIGNAL = hs.signals.BaseSignal(SHIFTS).transpose(navigation_axes=2)


def total(descan, signal=SIGNAL):
    options = {"descan": descan, "lazy_output": False, "show_progressbar": False}
    return signal.udf.run_udf(SumUDF(), **options)["intensity"].data


@pytest.mark.parametrize(
    "shifts",
    [
        SHIFTS,
        SHIFT_SIGNAL,
        SHIFT_SIGNAL.as_lazy(),
        Descan(SHIFT_SIGNAL),
    ],
    ids=["array", "signal", "lazy", "Descan"],
)
def test_signals(shifts):
    np.testing.assert_array_equal(total(shifts), RIGHT)
    np.testing.assert_array_equal(total(shifts, hs.signals.Signal2D(DATA)), RIGHT)


def test_own_results():
    com = SIGNAL.udf.run_udf(CoMUDF())
    raw = ud.run_udf(X, CoMUDF())["raw_shifts"]
    expected = ud.run_udf(X, SumUDF(), descan=raw)["intensity"].compute()
    np.testing.assert_array_equal(total(com["raw_shifts"]), expected)


def test_all_methods():
    assert "descans" in str(SIGNAL.udf.explain(SumUDF(), descan=SHIFT_SIGNAL))
    iterator = SIGNAL.udf.run_udf_iter(SumUDF(), descan=SHIFT_SIGNAL, scheduler="synchronous")
    (*_, last) = iterator
    np.testing.assert_array_equal(last.buffers[0]["intensity"].data, RIGHT)


def test_signals_that_do_not_fit():
    with pytest.raises(ud.ArgumentValueError, match=r"shape \(4, 4, 2\).* needs \(4, 5, 2\)"):
        total(SHIFT_SIGNAL.inav[1:])
    beam = SHIFT_SIGNAL.deepcopy()
    beam._signal_type = "beam_shift"  # as pyxem's class has it
    with pytest.raises(ud.ArgumentValueError, match=r"pass -shifts\.data\[\.\.\., ::-1\]"):
        total(beam)
