"""Shifts of frames that are signals."""

import dask.array as da
import hyperspy.api as hs
import numpy as np
import pytest

import udfdask as ud
import udfdask.hyperspy
from udfdask.corrections import CorrectionSet, Descan
from udfdask.udfs import CoMUDF, SumUDF, VirtualDetectorUDF

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


def test_signals_that_do_not_fit():
    with pytest.raises(ud.ArgumentValueError, match=r"shape \(4, 4, 2\).* needs \(4, 5, 2\)"):
        total(SHIFT_SIGNAL.inav[1:])
    beam = SHIFT_SIGNAL.deepcopy()
    beam._signal_type = "beam_shift"  # as pyxem's class has it
    with pytest.raises(ud.ArgumentValueError, match=r"-shifts\.data\[\.\.\., ::-1\]"):
        total(beam)


def named(data, *names, nav=2):
    """Return a signal whose axes have these names, in the order of the array."""
    axes = [
        {"name": name, "size": size, "navigate": axis < nav}
        for axis, (name, size) in enumerate(zip(names, data.shape, strict=True))
    ]
    return hs.signals.BaseSignal(data, axes=axes)


def test_signals_are_aligned_by_the_names_of_their_axes():
    rng = np.random.default_rng(3)
    data = named(rng.integers(0, 99, (4, 4, 6, 6)).astype("uint16"), "y", "x", "ky", "kx")
    x, shifts, plane = da.from_array(data.data), rng.integers(-2, 3, (4, 4, 2)), rng.random((6, 6))
    dark = CorrectionSet(dark=plane)
    right = ud.run_udf(x, SumUDF(), descan=shifts, corrections=dark)["intensity"].compute()
    centers = shifts + 3.0
    disk = ud.run_udf(x, VirtualDetectorUDF("disk", r=2, centers=centers))["intensity"].compute()
    given = named(shifts, "y", "x", "component"), named(plane, "ky", "kx", nav=0)
    swapped = named(shifts.swapaxes(0, 1), "x", "y", "component"), named(plane.T, "kx", "ky", nav=0)
    quiet = {"show_progressbar": False}
    for shift, frame in (given, swapped):
        options = {"descan": shift, "corrections": CorrectionSet(dark=frame), **quiet}
        found = data.udf.run_udf(SumUDF(), **options)["intensity"].data
        np.testing.assert_allclose(found, right)
        own = VirtualDetectorUDF("disk", r=2, centers=shift + 3.0)
        np.testing.assert_array_equal(data.udf.run_udf(own, **quiet)["intensity"].data, disk)
    # names of other axes mean nothing, as in HyperSpy
    other = data.udf.run_udf(SumUDF(), descan=named(shifts, "b", "a", "c"), **quiet)
    plain = ud.run_udf(x, SumUDF(), descan=shifts)["intensity"].compute()
    np.testing.assert_array_equal(other["intensity"].data, plain)
