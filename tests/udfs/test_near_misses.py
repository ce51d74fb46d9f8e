"""Near misses of shapes, units, parameters and kinds of data: each message says what to write."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask.geometry.units import factor
from udfdask.udfs import CrystallinityUDF, SumUDF, VirtualDetectorUDF

DATA = da.ones((2, 3, 16, 16), chunks=(1, 3, 16, 16))
AXES = [
    *(ud.Axis(name=name, unit="nm") for name in "yx"),
    *(ud.Axis(name=name, unit="mrad") for name in ("ky", "kx")),
]


@pytest.mark.parametrize(
    ("unit", "target", "words"),
    [
        ("mrads", "mrad", "mrads is no unit that fits mrad; did you mean mrad?"),
        ("mard", "mrad", "mard is no known unit.*; did you mean mrad?"),
        ("1/mn", "1/nm", "did you mean 1/nm?"),
        ("blub", "mrad", "blub is no known unit$"),
        ("eV", "mrad", "eV and mrad measure different things$"),
        ("mrad", "furz", "^furz is no known unit$"),
        ("mrad", "mrd", "^mrd is no common unit of an axis; did you mean mrad?"),
        ("mrad", "mard", "^mard is no known unit; did you mean mrad?"),
        ("ev", "eV", "^ev is no known unit; did you mean eV. Capital letters matter"),
        ("kev", "eV", "^kev is no known unit; did you mean keV. Capital letters matter"),
    ],
)
def test_a_unit_that_is_spelled_nearly_so(unit, target, words):
    with pytest.raises(ValueError, match=words):
        factor(unit, target)


@pytest.mark.parametrize(
    ("unit", "target", "expected"),
    [
        (r"$\AA^{-1}$", "1/nm", 10.0),  # pyxem
        ("$A^{-1}$", "1/nm", 10.0),
        ("k_A^-1", "1/nm", 10.0),
        ("q_nm^-1", "q_A^-1", 0.1),
        ("2th_deg", "mrad", np.pi / 180 * 1000),
        ("A^-1", "1/nm", 10.0),  # py4DSTEM
        ("A", "nm", 0.1),
        ("pixels", "px", 1.0),
        ("nm$^{-1}$", "1/nm", 1.0),  # HyperSpy
        (r"$\mathrm{\AA}$", "Å", 1.0),
        (r"$\mu m$", "nm", 1000.0),
        ("Å⁻¹", "1/nm", 10.0),
        ("\u03bcm", "\u00b5m", 1.0),
        ("1/Å", "1/nm", 10.0),  # DigitalMicrograph
        ("Angstrom", "nm", 0.1),
    ],
)
def test_units_as_other_programs_write_them(unit, target, expected):
    assert factor(unit, target) == pytest.approx(expected)
    assert factor(target, unit) == pytest.approx(1 / expected)


def test_wave_numbers_with_and_without_two_pi_are_not_the_same():
    with pytest.raises(ValueError, match="measure different things"):
        factor("q_A^-1", "k_A^-1")


def test_a_misspelled_unit_of_a_parameter():
    with pytest.raises(ud.ArgumentValueError, match=r"mrads is no unit.*did you mean mrad"):
        ud.run_udf(DATA, VirtualDetectorUDF("disk", r="4 mrads"), axes=AXES)


@pytest.mark.parametrize(
    ("shape", "meant"),
    [("disc", "disk"), ("Circle", "disk"), ("rnig", "ring"), ("rectangel", "rect")],
)
def test_a_shape_that_is_spelled_nearly_so(shape, meant):
    with pytest.raises(ud.ArgumentValueError, match=f"did you mean '{meant}'"):
        VirtualDetectorUDF(shape, r=4)


def test_a_shape_like_no_other():
    with pytest.raises(ud.ArgumentValueError, match=r"one of disk, .*, not 'zzz'$"):
        VirtualDetectorUDF("zzz")


def test_unknown_numbers_list_those_of_the_shape():
    with pytest.raises(TypeError, match=r"a disk takes r, .*, but radius was given"):
        VirtualDetectorUDF("disk", radius=4)
    with pytest.raises(TypeError, match="takes other numbers, but radius was given"):
        VirtualDetectorUDF(np.ones((16, 16), bool), radius=4)
    with pytest.raises(TypeError, match="takes other numbers, but radius was given"):
        VirtualDetectorUDF(["disk"], radius=4)


@pytest.mark.parametrize("several", [{"BF": np.ones((16, 16))}, [np.ones((16, 16))]])
def test_several_detectors_are_named_udfs_or_masks(several):
    with pytest.raises(TypeError, match=r'use ApplyMasksUDF\(\{"BF": mask.*run_udf with .*BF'):
        VirtualDetectorUDF(several)


@pytest.mark.parametrize("value", ["2 mrad", (2, "mrad"), "2"])
def test_radii_of_the_fourier_transform_have_no_unit(value):
    with pytest.raises(TypeError, match=r"rad_in must be a number of bins of the Fourier"):
        CrystallinityUDF(value, 6)
    with pytest.raises(TypeError, match=r"rad_out must be a number of bins of the Fourier"):
        CrystallinityUDF(2, value)


def test_a_list_of_signals():
    hs = pytest.importorskip("hyperspy.api", reason="HyperSpy is an extra")
    signals = [hs.signals.Signal2D(np.ones((2, 3, 4, 4)))] * 2
    with pytest.raises(TypeError, match=r"choose one signal .*signals\[0\]\.udf\.run_udf"):
        ud.run_udf(signals, SumUDF())
    with pytest.raises(TypeError, match="make one array of it"):
        ud.run_udf([np.ones((2, 2))], SumUDF())
