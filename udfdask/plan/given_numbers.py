"""Show numbers in errors as they were given: ``cy='5 cm'`` in place of ``cy=311.3`` pixels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from udfdask.errors import UDFError
from udfdask.geometry.axes import Axis, Calibration
from udfdask.geometry.units import Quantity, as_coordinate
from udfdask.plan.parameters_in_pixels import parameters_in_pixels
from udfdask.udf import UDF

_ABOUT_PIXELS = re.compile(
    r": numbers are in pixels, x to the right and y down|; numbers are in pixels"
    r"|: radii and center are in pixels|(?<=') pixels| within 0 and \d+, in channels.*"
)


def show_given_numbers(
    error: UDFError, udfs: Iterable[UDF], calibration: Calibration, shape: Sequence[int], n_sig: int
) -> None:
    """Replace numbers of pixels in an error by the lengths that the user gave in a unit.

    `udfs` are those of the user, and `n_sig` is the number of signal axes.
    """
    if not error.args:
        return
    text = old = str(error.args[0])
    for udf in udfs:
        text = _with_given(text, udf, calibration, n_sig)
    if text != old:
        first = len(shape) - n_sig
        ranges = map(_range, calibration.axes[first:], shape[first:])
        error.args = (f"{_ABOUT_PIXELS.sub('', text)}; frames have {' and '.join(ranges)}",)


def _with_given(text: str, udf: UDF, calibration: Calibration, n_sig: int) -> str:
    """Return a message with the lengths that one UDF was given."""
    values = {name: as_coordinate(name, udf._kwargs[name]) for name in _names(udf)}
    given = {name: value for name, value in values.items() if isinstance(value, Quantity)}
    if not given:
        return text
    pixels = parameters_in_pixels(type(udf), udf._kwargs, calibration, n_sig)
    for name, quantity in given.items():
        shown, words = re.escape(f"{pixels[name]!s}"), repr(str(quantity))
        text = re.sub(rf"\b{name}={shown}(?![\w.]*\d)", f"{name}={words}", text)
        if len(shown) > 4:  # a number that can hardly mean anything else
            text = re.sub(rf"(?<![\w.]){shown}(?![\w.]*\d)", words, text)
    return text


def _names(udf: UDF) -> list[str]:
    """Return the names of the parameters that are one length or one position."""
    several = ("lengths", "position", "positions", "shift")
    meanings = type(udf).calibrated.items()
    return [name for name, meaning in meanings if name in udf._kwargs and meaning not in several]


def _range(axis: Axis, size: int) -> str:
    """Return the positions of an axis, in its unit."""
    first, last = axis.positions(size)[[0, -1]] if size else (axis.offset, axis.offset)
    return f"{axis.name} from {first:g} to {last:g} {axis.unit or 'px'}"
