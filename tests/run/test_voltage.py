"""The voltage of the microscope goes from a run to UDFs and results."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import make
from run_doors import DOORS, methods
from udfdask.geometry.electrons import volts, wavelength
from udfdask.udfs import SumUDF

X = da.ones((2, 3, 4, 4), chunks=(1, 3, 4, 4))
Volts = make(
    {"volts": {"kind": "nav", "dtype": "float64"}},
    get_result_units=lambda self: {"volts": "V"},
    process_frame=lambda self, frame: self.results.volts.fill(self.meta.voltage or -1),
)


@pytest.mark.parametrize("given", ["300 kV", (300, "kV"), "0.3 MeV", 300e3, np.float32(3e5)])
def test_a_voltage_in_its_units_is_in_volts(given):
    assert volts(given) == 300e3


@pytest.mark.parametrize(
    ("voltage", "picometers"), [(80e3, 4.1757), (200e3, 2.5079), (300e3, 1.9687), (1e6, 0.8719)]
)
def test_the_wavelength_is_that_of_tables(voltage, picometers):
    assert 1e3 * wavelength(voltage) == pytest.approx(picometers, abs=5e-5)


@pytest.mark.parametrize("door", DOORS)
def test_udfs_and_results_know_the_voltage(door):
    run = methods(door, X)
    for options, expected in (({"voltage": "300 kV"}, 300e3), ({}, -1)):
        found = run.run_udf(Volts(), **options)["volts"]
        assert np.all(np.asarray(getattr(found, "data", found)) == expected)
        *_, last = run.run_udf_iter(Volts(), **options)
        assert np.all(np.asarray(last.buffers[0]["volts"]) == expected)
    assert run.explain(Volts(), voltage=80e3).n_chunks == 2


def test_results_keep_the_voltage():
    result = ud.run_udf(X, SumUDF(), voltage="300 kV")
    assert result.calibration.voltage == result.compute().calibration.voltage == 300e3
    assert ud.run_udf(X, SumUDF()).calibration.voltage is None


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("given", "error"),
    [
        (0, ud.ArgumentValueError),
        ("0 V", ud.ArgumentValueError),
        (300, ud.ArgumentValueError),
        (float("nan"), ud.ArgumentValueError),
        ("300 mrad", ud.ArgumentTypeError),
        ("300", ud.ArgumentTypeError),
        ((300, 3), ud.ArgumentTypeError),
        (True, ud.ArgumentTypeError),
    ],
)
def test_no_voltage(door, given, error):
    run = methods(door, X)
    for call in (run.run_udf, run.run_udf_iter, run.explain):
        with pytest.raises(error, match=r"voltage must be .*voltage='300 kV'"):
            call(SumUDF(), voltage=given)
