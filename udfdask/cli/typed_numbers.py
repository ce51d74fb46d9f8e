"""Show numbers in errors as they were typed: ``cy=5cm`` in place of ``cy=311.3`` pixels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from udfdask.arrays.geometry.axes import Axis, Calibration
from udfdask.arrays.geometry.units import Quantity
from udfdask.errors import UDFError
from udfdask.plan.parameters_in_pixels import parameters_in_pixels
from udfdask.udf import UDF

_ABOUT_PIXELS = re.compile(
    r": numbers are in pixels, x to the right and y down|; numbers are in pixels"
    r"|, in channels \(Axis\.to_pixels converts from units\)"
)


@contextmanager
def typed_numbers(data: Any, udfs: Iterable[UDF]) -> Iterator[None]:
    """Replace numbers of pixels in an error by the quantities that the user typed.

    `data` may know their axes, as an opened file does.
    """
    try:
        yield
    except UDFError as error:
        axes, sig_dims = getattr(data, "axes", None), getattr(data, "sig_dims", None)
        if axes is None or sig_dims is None or not error.args:
            raise
        calibration = Calibration(axes=tuple(axes))
        text = old = str(error.args[0])
        for udf in udfs:
            text = _with_typed(text, udf, calibration, sig_dims)
        if text != old:
            error.args = (f"{_ABOUT_PIXELS.sub('', text)}; {_ranges(axes, data, sig_dims)}",)
        raise


def _with_typed(text: str, udf: UDF, calibration: Calibration, sig_dims: int) -> str:
    """Return a message with the quantities of one UDF."""
    typed = {name: v for name, v in udf._kwargs.items() if isinstance(v, Quantity)}
    try:
        pixels = parameters_in_pixels(type(udf), typed, calibration, sig_dims)
    except UDFError:  # this is the error
        return text
    for name, quantity in typed.items():
        shown = re.escape(f"{pixels[name]!s}")
        text = re.sub(rf"\b{name}={shown}(?![\w.]*\d)", f"{name}={_in_one(quantity)}", text)
        if len(shown) > 4:  # a number that can hardly mean anything else
            text = re.sub(rf"(?<![\w.]){shown}(?![\w.]*\d)", _in_one(quantity), text)
    return text


def _in_one(quantity: Quantity) -> str:
    """Return a quantity in one word: 5cm."""
    space = " " if quantity.unit[:1].isdigit() else ""
    return f"{quantity.value:g}{space}{quantity.unit}"


def _ranges(axes: Sequence[Axis], data: Any, sig_dims: int) -> str:
    """Return where the frames are, in units."""
    n = len(axes) - sig_dims
    parts = []
    for axis, size in zip(axes[n:], data.array.shape[n:], strict=True):
        first, last = axis.offset, axis.offset + (size - 1) * axis.scale
        parts.append(f"{axis.name} from {first:g} to {last:g} {axis.unit or 'px'}")
    return f"frames have {' and '.join(parts)}"
