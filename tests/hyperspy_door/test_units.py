"""The units of results are in the quantities of their signals."""

import hyperspy.api as hs
import numpy as np

import udfdask.hyperspy  # noqa: F401 - adds the accessor
from udfdask.udfs import CoMUDF, StdDevUDF, SumSigUDF, SumUDF

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
