"""Axes with units: parameters in their units, and the units of results as signals."""

import hyperspy.api as hs
import numpy as np
import pytest

import udfdask as ud
import udfdask.hyperspy
from udfdask.udfs import CoMUDF, RadialProfileUDF, StdDevUDF, SumSigUDF, SumUDF, VirtualDetectorUDF

FRAMES = np.random.default_rng(2).integers(0, 100, (4, 5, 8, 9)).astype("uint16")
OPTIONS = {"show_progressbar": False}


def calibrated():
    signal = hs.signals.Signal2D(FRAMES.copy())
    named = [
        ("y", "nm", 2.0, 0.0),
        ("x", "nm", -2.0, 5.0),
        ("ky", "1/nm", 0.5, -2.0),
        ("kx", "1/nm", 0.5, -2.0),
    ]
    for axis, (name, unit, scale, offset) in zip(signal.axes_manager._axes, named, strict=True):
        axis.name, axis.units, axis.scale, axis.offset = name, unit, scale, offset
    signal.metadata.set_item("Signal.quantity", "Electrons (counts)")
    return signal


def quantity(signal):
    return signal.metadata.get_item("Signal.quantity", default="")


def test_results_have_units():
    total, sums, com, deviation = calibrated().udf.run_udf(
        [SumUDF(), SumSigUDF(), CoMUDF(), StdDevUDF()], **OPTIONS
    )
    assert quantity(total["intensity"]) == "Electrons (counts)"
    assert quantity(sums["intensity"]) == "intensity (counts)"
    assert quantity(com["magnitude"]) == "magnitude (1/nm)"
    assert quantity(com["divergence"]) == "divergence (1/nm²)"
    assert quantity(com["raw_com"]) == "raw_com (px)"
    assert quantity(deviation["std"]) == "Electrons (counts)"
    y, x = (com["magnitude"].axes_manager[name] for name in "yx")
    assert (y.scale, x.scale, x.offset, x.units) == (2.0, -2.0, 5.0, "nm")


def test_values_of_another_unit_do_not_have_the_quantity_of_the_data():
    signal = calibrated()
    deviation = signal.udf.run_udf(StdDevUDF(), **OPTIONS)
    assert quantity(deviation["var"]) == ""
    assert quantity(deviation.valid_mask["std"]) == ""
    signal.metadata.Signal.quantity = "Electrons"  # without a unit
    assert quantity(signal.udf.run_udf(SumUDF(), **OPTIONS)["intensity"]) == "Electrons"


def test_parameters_in_units_of_the_axes():
    signal = calibrated()
    detector = VirtualDetectorUDF("disk", cy="0 1/nm", cx="0.5 nm^-1", r=(1.5, "1/nm"))
    found = signal.udf.run_udf(detector, **OPTIONS)["intensity"].data
    plain = calibrated().udf.run_udf(VirtualDetectorUDF("disk", cy=4, cx=5, r=3), **OPTIONS)
    np.testing.assert_array_equal(found, plain["intensity"].data)
    profile = signal.udf.run_udf(RadialProfileUDF(r="2 1/nm"), **OPTIONS)["intensity"]
    radius = profile.axes_manager["radius"]
    assert (radius.units, radius.scale, radius.offset) == ("1/nm", 0.5, 0.25)
    assert signal.udf.explain(CoMUDF(r="1 1/nm")).n_chunks >= 1
    *_, last = signal.udf.run_udf_iter(CoMUDF(r="1 1/nm"))
    assert quantity(last.buffers[0]["field"]) == "field (1/nm)"


def test_axes_without_units():
    signal = hs.signals.Signal2D(FRAMES)
    with pytest.raises(ud.ArgumentValueError, match="has no unit"):
        signal.udf.run_udf(CoMUDF(r="1 mrad"), **OPTIONS)
    assert quantity(signal.udf.run_udf(CoMUDF(), **OPTIONS)["field"]) == "field (px)"


def test_an_uneven_axis():
    signal = calibrated()
    signal.axes_manager["kx"].convert_to_non_uniform_axis()
    signal.axes_manager["kx"].axis = np.arange(9.0) ** 2
    with pytest.raises(ud.ArgumentValueError, match="'kx' are not evenly spaced"):
        signal.udf.run_udf(CoMUDF(cx="1 1/nm"), **OPTIONS)
    total = signal.udf.run_udf(SumUDF(), **OPTIONS)["intensity"]
    np.testing.assert_array_equal(total.axes_manager["kx"].axis, np.arange(9.0) ** 2)
