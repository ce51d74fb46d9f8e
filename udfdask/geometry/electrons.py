"""The voltage and wavelength of electrons, which connects angles with spatial frequencies."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.units import Quantity, as_quantity, factor

LEAST, MOST = 1e3, 1e7
"""Acceleration voltages of microscopes, in volts."""


def volts(given: Any) -> float:
    """Return an acceleration voltage in volts: of "300 kV", (80, "keV"), or a number of volts.

    Raise if it is not a number, has another unit, or is not between 1 kV and 10 MV.
    """
    advice = "such as voltage='300 kV'"
    wrong = ArgumentTypeError(
        f"voltage must be a number with a unit, {advice}, or in volts, not {given!r}"
    )
    try:
        value = as_quantity("voltage", given)
    except ArgumentTypeError:  # its message is about pixels
        raise wrong from None
    if isinstance(value, Quantity):
        for unit in ("V", "eV"):
            with contextlib.suppress(ValueError):
                value = value.value * factor(value.unit, unit)
                break
    if isinstance(value, (bool, np.bool)) or not isinstance(value, (int, float, np.number)):
        raise wrong
    if not LEAST <= value <= MOST:
        raise ArgumentValueError(
            f"voltage must be between 1 kV and 10 MV, not {value:g} V: write the unit, {advice}"
        )
    return float(value)


def wavelength(voltage: float) -> float:
    """Return the relativistic wavelength of electrons of this voltage, in nanometers."""
    from scipy import constants  # takes a while to import

    energy, rest = constants.e * voltage, constants.m_e * constants.c**2
    momentum = math.sqrt(energy * (energy + 2 * rest)) / constants.c
    return float(1e9 * constants.h / momentum)


def factor_at(voltage: float | None, unit: str, target: str) -> float:
    """Return `units.factor`, also between angles and spatial frequencies of electrons.

    The spatial frequency of a small angle is the angle / wavelength. Raise ValueError if the units
    do not fit, or there is no voltage.
    """
    try:
        return factor(unit, target)
    except ValueError as error:
        wrong = error
    for one, other, power in (("rad", "k_nm^-1", -1), ("k_nm^-1", "rad", 1)):
        with contextlib.suppress(ValueError):
            ends = factor(unit, one) * factor(other, target)
            if voltage is None:
                wrong = ValueError(f"{wrong}; pass voltage='300 kV' to convert them")
                break
            return ends * wavelength(voltage) ** power
    raise wrong
