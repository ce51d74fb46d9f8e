"""The voltage of the microscope: what is one, who knows it, and parameters in mrad over 1/nm."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from commands import call, write_with_axes
from making import make
from run_doors import DOORS, methods
from udfdask.geometry.electrons import factor_at, volts, wavelength
from udfdask.io import open_file
from udfdask.masks import DiskTemplate
from udfdask.udfs import CoMUDF, CorrelationUDF, SumUDF, VirtualDetectorUDF

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


def test_results_keep_the_voltage(tmp_path):
    xr = pytest.importorskip("xarray", reason="xarray is an extra")
    result = ud.run_udf(X, SumUDF(), voltage="300 kV")
    assert result.to_xarray()["intensity"].attrs["voltage"] == "300 kV"
    ud.save_results(tmp_path / "sum.nc", {"sum": result})
    with xr.open_dataset(tmp_path / "sum.nc") as found:
        assert volts(found["sum_intensity"].attrs["voltage"]) == 300e3
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
    for plan in (run.run_udf, run.run_udf_iter, run.explain):
        with pytest.raises(error, match=r"voltage must be .*voltage='300 kV'"):
            plan(SumUDF(), voltage=given)


@pytest.mark.parametrize(
    ("unit", "target", "expected"),
    [
        ("mrad", "1/nm", 0.507937),
        ("rad", "1/nm", 507.937),
        ("deg", "1/Å", 0.886517),
        ("µrad", "k_nm^-1", 0.000507937),
        ("2th_deg", "k_A^-1", 0.886517),  # pyxem
        ("mrad", "A^-1", 0.0507937),  # py4DSTEM
        ("mrad", r"$\AA^{-1}$", 0.0507937),
    ],
)
def test_angles_and_spatial_frequencies_are_converted(unit, target, expected):
    assert factor_at(300e3, unit, target) == pytest.approx(expected, rel=2e-6)
    assert factor_at(300e3, target, unit) == pytest.approx(1 / expected, rel=2e-6)


@pytest.mark.parametrize("voltage", [None, 300e3])
@pytest.mark.parametrize(
    ("unit", "target"), [("q_A^-1", "mrad"), ("mrad", "nm"), ("1/nm", "eV"), ("px", "1/nm")]
)
def test_other_units_stay_different_things(voltage, unit, target):
    for pair in ((unit, target), (target, unit)):
        with pytest.raises(ValueError, match=r"measure different things$"):
            factor_at(voltage, *pair)


SIDE = 16
FRAMES = np.random.default_rng(0).integers(0, 100, (2, 3, SIDE, SIDE)).astype("uint16")
LAMBDA = wavelength(200e3)


def axes_in(unit, scale):
    nav = [ud.Axis(name=name, unit="nm", scale=0.5) for name in "yx"]
    how = {"unit": unit, "scale": scale, "offset": -8 * scale}
    return [*nav, *(ud.Axis(name=name, **how) for name in ("ky", "kx"))]


LENGTHS = {
    "1/nm": (axes_in("1/nm", 0.25), lambda pixels: (pixels * 0.25 * LAMBDA * 1e3, "mrad")),
    "mrad": (axes_in("mrad", 0.5), lambda pixels: (pixels * 0.5e-3 / LAMBDA, "1/nm")),
}
"""Axes in a unit, and a length of some pixels in the other unit."""


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("unit", LENGTHS)
def test_parameters_in_the_other_unit_are_the_same_pixels(door, unit):
    axes, length = LENGTHS[unit]
    run = methods(door, da.from_array(FRAMES, chunks=(1, 3, -1, -1)))
    pixels = VirtualDetectorUDF("ring", ri=2, ro=5, cy=7, cx=8)
    ring = VirtualDetectorUDF("ring", ri=length(2), ro=length(5), cy=length(-1), cx="zero")
    how = {"axes": axes, "voltage": "200 kV"}
    plain = ud.run_udf(da.from_array(FRAMES), pixels)["intensity"].compute()
    found = run.run_udf(ring, **how)["intensity"]
    np.testing.assert_array_equal(np.asarray(getattr(found, "data", found)).reshape(2, 3), plain)
    *_, last = run.run_udf_iter(ring, **how)
    values = last.buffers[0]["intensity"]
    np.testing.assert_array_equal(np.asarray(getattr(values, "data", values)), plain)
    assert run.explain(ring, **how).n_chunks == 2
    for plan in (run.run_udf, run.run_udf_iter, run.explain):
        with pytest.raises(ud.ArgumentValueError, match=r"cy=.*; pass voltage='300 kV'"):
            plan(ring, axes=axes)


@pytest.mark.parametrize("unit", LENGTHS)
def test_every_kind_of_parameter_is_converted(unit):
    axes, length = LENGTHS[unit]
    x = da.from_array(FRAMES)
    where, other = length(1)
    shift = (length(1), length(-2))
    pairs = [
        (CoMUDF(cy=length(1), cx=length(0), r=length(4)), CoMUDF(cy=9, cx=8, r=4)),
        (
            CorrelationUDF(
                ([(where, -2 * where)], other),
                template=DiskTemplate(radius=length(2)),
                steps=2,
                zero_shift=shift,
            ),
            CorrelationUDF([(9, 6)], template=DiskTemplate(radius=2), steps=2, zero_shift=(1, -2)),
        ),
        (
            VirtualDetectorUDF(
                "rect", x=length(0), y=length(-3), width=length(3), height=length(2)
            ),
            VirtualDetectorUDF("rect", x=8, y=5, width=3, height=2),
        ),
    ]
    for converted, plain in pairs:
        found = ud.run_udf(x, converted, axes=axes, voltage="200 kV").compute()
        expected = ud.run_udf(x, plain, axes=axes).compute()
        for name in expected:
            np.testing.assert_array_equal(found[name], expected[name])


def test_the_command_line(tmp_path):
    pytest.importorskip("h5py", reason="h5py is in the io extra")
    axes, _ = LENGTHS["1/nm"]
    file = write_with_axes(tmp_path / "scan.h5", FRAMES, axes)
    udf = ("--udf", "BF=disk:r=3 mrad", "--out", tmp_path / "out.npz")
    assert "BF" in call("run", file, *udf, "--voltage", "200 kV")
    assert "voltage=" in call("explain", file, *udf[:2], code=1)
    assert "voltage must be" in call("explain", file, *udf[:2], "--voltage", "0 kV", code=1)
    expected = ud.run_udf(da.from_array(FRAMES), VirtualDetectorUDF("disk", cy=8, cx=8, r=4.78))
    with np.load(tmp_path / "out.npz") as found:
        np.testing.assert_array_equal(found["BF_intensity"], expected["intensity"].compute())


def signal_of(node, energy):
    hs = pytest.importorskip("hyperspy.api", reason="hyperspy is an extra")
    signal = hs.signals.Signal2D(FRAMES)
    if node is not None:
        signal.metadata.set_item(f"Acquisition_instrument.{node}.beam_energy", energy)
    return signal


@pytest.mark.parametrize(
    ("node", "energy", "expected"),
    [
        ("TEM", 200.0, 200e3),
        ("SEM", 20, 20e3),
        (None, None, None),
        ("TEM", 0, None),  # some formats write 0
        ("TEM", "high", None),
        ("TEM", None, None),
    ],
)
def test_signals_and_their_files_know_the_voltage(tmp_path, node, energy, expected):
    signal = signal_of(node, energy)
    pytest.importorskip("udfdask.hyperspy")
    how = {"lazy_output": False, "show_progressbar": False}
    assert signal.udf.run_udf(SumUDF(), **how).result.calibration.voltage == expected
    known = signal.udf.run_udf(SumUDF(), voltage="80 kV", **how)
    assert known.result.calibration.voltage == 80e3
    assert known["intensity"].metadata.udfdask.voltage == "80 kV"
    signal.save(tmp_path / "scan.hspy")
    opened = open_file(tmp_path / "scan.hspy")
    assert opened.voltage == opened[:1, ::2].voltage == expected
    assert ("voltage" in repr(opened)) == (expected is not None)
    for data, more in (
        (opened, {}),
        (opened, {"axes": opened.axes}),
        (opened.array, {"axes": opened}),
    ):
        assert ud.run_udf(data, SumUDF(), **more).calibration.voltage == expected
        assert ud.run_udf(data, SumUDF(), voltage=80e3, **more).calibration.voltage == 80e3
