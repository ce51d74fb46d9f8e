"""Units as programs write them, and units that do not fit."""

import numpy as np
import pytest

from udfdask.geometry.units import factor


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


@pytest.mark.parametrize(
    ("unit", "target"),
    [
        ("mrads", "mrad"),
        ("mard", "mrad"),
        ("eV", "mrad"),
        ("mrad", "mrd"),  # pint knows millirods
        ("ev", "eV"),
        ("px", "mrad"),
        ("q_A^-1", "k_A^-1"),  # without and with 2 pi
    ],
)
def test_units_that_do_not_fit(unit, target):
    with pytest.raises(ValueError, match=unit.replace("^", r"\^")):
        factor(unit, target)
