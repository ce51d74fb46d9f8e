"""Quantities with a unit: read them from text, and convert them to the unit of an axis."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from tokenize import TokenError
from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError

PIXELS = frozenset({"px", "pix", "pixel", "pixels", "Pixel", "Pixels"})
"""Names of the unit of an axis without calibration."""

CENTER_WORDS = ("zero", "middle")
"""Words in place of a coordinate of a center: 0 of the axis, or the middle of a frame."""

_NUMBER = re.compile(
    r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*((?:1\s*/\s*)?[^\s\d.+\-].*?)\s*"
)
_SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_POWER = re.compile(r"(?<=[^\W\d_])\s*(?:\^|\*\*)?\s*(-?\d+)")
_ANGSTROM = re.compile(r"(?<![^\W\d_])(?:A|Å|\u212b|[Aa]ng(?:strom)?s?)(?![^\W\d_])")
_SPELLINGS = (
    (r"\\mu\s*", "\u00b5"),
    (r"\\AA", "Å"),
    (r"\\mathrm|[${}\\]", ""),  # HyperSpy's and pyxem's units are LaTeX: $\AA^{-1}$, nm$^{-1}$
    ("\u03bc", "\u00b5"),
    ("·", "*"),
)
"""Parts of units as other libraries write them, and as pint knows them."""
_QUANTITY = re.compile(r"\s*(k|q|2th)_(?=\w)")
"""What an axis of pyxem measures: k_A^-1 and q_A^-1 are 1/Å, 2th_deg is degrees."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with a unit, such as 10 mrad."""

    value: float
    """The number."""
    unit: str
    """The unit, as it was written."""

    def __str__(self) -> str:
        return f"{self.value:.12g} {self.unit}"


def as_quantity(name: str, given: Any) -> Any:
    """Return a parameter of a UDF, a text or pair such as ``(10, "mrad")`` as a `Quantity`.

    Anything else is returned as it is, and a number of pixels as a number.
    """
    number: Any
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], str):
        number, unit = given
    elif isinstance(given, str):
        found = _NUMBER.fullmatch(given)
        number, unit = (float(found[1]), found[2]) if found else (None, "")
    else:
        return given
    is_number = isinstance(number, (int, float, np.number)) and not isinstance(number, bool)
    if not is_number or not math.isfinite(number):
        raise ArgumentTypeError(
            f"{name} must be a number of pixels, not {given!r} of type {type(given).__name__}; or "
            "have the unit of the axis, such as '10 mrad' or (10, 'mrad')"
        )
    unit = f"1{unit}" if unit.startswith("/") else unit  # 0.5/nm
    return float(number) if unit in PIXELS else Quantity(float(number), unit)


def unit_of_quantity(text: Any) -> str | None:
    """Return the unit in HyperSpy's texts such as "Electrons (Counts)"; None if there is none."""
    found = re.search(r"\(([^()]+)\)\s*$", text) if isinstance(text, str) else None
    return None if found is None else found[1]


def factor(unit: str, target: str) -> float:
    """Return the number by which values in a unit are multiplied to be in another one.

    Raise ValueError if the units measure different things, or one of them is unknown.
    """
    measured = {found[1] for text in (unit, target) if (found := _QUANTITY.match(text))}
    if len(measured) > 1:  # q is 2 pi times k
        raise ValueError(f"{unit} and {target} measure different things")
    if _plain(unit) == _plain(target):
        return 1.0
    if _counts_pixels(unit) != _counts_pixels(target):  # a pixel of pint is 1/96 of an inch
        raise ValueError(f"{unit} and {target} measure different things")
    import pint  # equal units need no package, and it takes a while to import

    return _converted(pint.get_application_registry().get(), unit, target)


@lru_cache(maxsize=256)  # each conversion takes pint 0.3 ms, and a run needs several
def _converted(registry: Any, unit: str, target: str) -> float:
    import pint

    try:
        one, other = registry.Unit(_plain(unit)), registry.Unit(_plain(target))
        # pint takes angles for plain numbers; they are not counts
        if (1 * one).to_root_units().units != (1 * other).to_root_units().units:
            raise ValueError(f"{unit} and {target} measure different things")
        return float((1.0 * one).to(other).magnitude)
    except (pint.errors.PintError, TypeError, AttributeError, TokenError) as error:
        raise ValueError(f"{unit} or {target} is no unit that pint knows ({error})") from None


def _counts_pixels(unit: str) -> bool:
    return not PIXELS.isdisjoint(re.findall(r"[^\W\d_]+", unit))


def _plain(unit: str) -> str:
    """Return the name of a unit in one spelling: powers with ^, no LaTeX, Å as angstrom."""
    if unit in PIXELS:
        return "px"
    text = _QUANTITY.sub("", unit, count=1).strip().translate(_SUPERSCRIPTS)
    for pattern, spelling in _SPELLINGS:
        text = re.sub(pattern, spelling, text)
    text = _ANGSTROM.sub("angstrom", _POWER.sub(r"^\1", text))
    inverse = re.fullmatch(r"1\s*/\s*([^\W\d_]+)", text)
    return f"{inverse[1]}^-1" if inverse else text


def as_coordinate(name: str, given: Any) -> Any:
    """Return a coordinate of a center as `as_quantity` does; one of `CENTER_WORDS` as it is."""
    is_word = isinstance(given, str) and given in CENTER_WORDS
    return given if is_word else as_quantity(name, given)


def unit_of_quotient(unit: str, divisor: str) -> str:
    """Return the unit of a quotient: mrad/nm for mrad and nm, 1/nm² for 1/nm and nm."""
    if not unit.startswith("1/"):
        return f"{unit}/{divisor}"
    below = unit.removeprefix("1/")
    return f"1/{below}²" if below == divisor else f"1/({below} {divisor})"
