"""Give UDFs their parameters in pixels: from units, from words, and from 0 of the axes.

The class attribute `calibrated` of a UDF says what each parameter is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from udfdask.base.types import is_lazy
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Axis, Calibration
from udfdask.geometry.electrons import factor_at
from udfdask.geometry.shapes import Shape
from udfdask.geometry.units import CENTER_WORDS, Quantity, as_quantity
from udfdask.plan.parameters import with_parameters
from udfdask.udf import UDF

_DECIMALS = 9
"""Pixels are rounded to this number of decimals: 0.3 nm of 0.1 nm are 3, not 2.9999999999999996."""

_ALONG = {
    **dict.fromkeys(("y", "top", "height", "dy"), -2),
    **dict.fromkeys(("x", "left", "start", "stop", "width", "dx"), -1),
}
"""The signal axis along which a number with this meaning is measured."""

_PAIRS = {"position": ("y", "x"), "shift": ("dy", "dx")}
"""Parameters that are pairs, and what their two numbers are."""

_MEANINGS = {*_ALONG, *_PAIRS, "length", "lengths", "positions", "steps"}
_MEANINGS -= {"dy", "dx"}

_GIVE_AXES = (
    "axes=[...] with one udfdask.Axis(name=..., unit=..., scale=..., offset=...) for each dimension"
)


@dataclass(frozen=True, slots=True)
class Frame:
    """The signal axes of a run, and its voltage."""

    axes: tuple[Axis, ...]
    """Signal axes, one or more."""
    shape: tuple[int, ...]
    """Shape of a frame."""
    voltage: float | None
    """Acceleration voltage in volts, for angles over spatial frequencies."""

    @staticmethod
    def of(calibration: Calibration, shape: Shape) -> Frame:
        """Return the signal axes of data of this shape."""
        axes = calibration.axes[shape.nav.dims :]
        return Frame(axes, shape.sig.to_tuple(), calibration.voltage)

    def zero_inside(self) -> tuple[float, float] | None:
        """Return the place (y, x) where both axes are 0; None if that is not inside of the frame.

        Axes of pixel numbers or of a calibrated image are 0 at the border, where no beam is.
        """
        if len(self.axes) != 2 or any(axis.values is not None for axis in self.axes):
            return None
        y, x = map(_zero, self.axes)
        is_inside = all(1 <= at <= n - 2 for at, n in zip((y, x), self.shape, strict=True))
        return (y, x) if is_inside else None


def with_pixels(udf: UDF, frame: Frame) -> UDF:
    """Return a UDF whose parameters are in pixels; itself if they already are."""
    return with_parameters(udf, in_pixels(udf, udf._kwargs, frame)) if udf.calibrated else udf


def in_pixels(
    udf: UDF, kwargs: Mapping[str, Any], frame: Frame, *, are_all: bool = True
) -> dict[str, Any]:
    """Return parameters of a UDF in pixels; those that have neither unit nor word as they are.

    A center that is not given becomes the place where the axes are 0, if that is inside of the
    frame. Without `are_all`, `kwargs` are changes of some parameters.
    """
    cls = type(udf)
    if unknown := set(cls.calibrated.values()) - _MEANINGS:
        raise ArgumentTypeError(
            f"{cls.__name__}.calibrated must be a dictionary from names of parameters to one of "
            f"{sorted(_MEANINGS)}, not {unknown}"
        )
    converter = _Converter(cls, frame)
    given = {name: converter.read(name, value) for name, value in kwargs.items()}
    if (zero := frame.zero_inside()) is not None:
        parts = {"y": zero[0], "x": zero[1], "position": zero}
        for name in udf._center_names():
            if given.get(name) is None and (are_all or name in given):
                given[name] = parts.get(cls.calibrated.get(name, ""))
    _check_one_unit(converter, given)
    return {n: converter.pixels(n, cls.calibrated.get(n, ""), v) for n, v in given.items()}


@dataclass(frozen=True, slots=True)
class _Converter:
    """Convert parameters of a class to pixels of a frame."""

    cls: type[UDF]
    frame: Frame

    def read(self, name: str, given: Any) -> Any:
        """Return a parameter with quantities in place of texts, and pixels in place of words."""
        meaning = self.cls.calibrated.get(name)
        if meaning in _ALONG or meaning in ("length", "steps"):
            return self._number(name, meaning, given)
        if meaning in _PAIRS and isinstance(given, (tuple, list)) and len(given) == 2:
            if any(isinstance(one, (str, tuple)) for one in given):
                numbers = zip(_PAIRS[meaning], given, strict=True)
                return tuple(self._number(name, along, one) for along, one in numbers)
        elif meaning == "lengths" and is_dataclass(given) and not isinstance(given, type):
            read = {f.name: as_quantity(name, getattr(given, f.name)) for f in fields(given)}
            lengths = {n: self.length(name, v) for n, v in read.items() if isinstance(v, Quantity)}
            return replace(given, **lengths) if lengths else given
        elif meaning == "positions" and isinstance(given, tuple) and isinstance(given[-1], str):
            values, unit = given  # an array of shape (n, 2) and its unit
            rows = (zip("yx", row, strict=True) for row in values.tolist())
            return [
                tuple(self.pixels(name, a, as_quantity(name, (v, unit))) for a, v in row)
                for row in rows
            ]
        return given

    def _number(self, name: str, meaning: str, given: Any) -> Any:
        if meaning not in ("y", "x") or not isinstance(given, str) or given not in CENTER_WORDS:
            return as_quantity(name, given)
        who = self.who(name, given)
        axis = self.axis(who, meaning)
        if given == "middle":
            return self.frame.shape[_ALONG[meaning]] // 2
        if axis.values is not None or not (axis.is_calibrated or axis.offset):
            raise ArgumentValueError(
                f"{who}, but the axis {axis.name!r} of the data does not say where 0 is: it has "
                "neither a unit nor an offset, or its positions are not evenly spaced. Give "
                f"pixels, 'middle', or the axes of the data: {_GIVE_AXES}"
            )
        return _zero(axis)

    def pixels(self, name: str, meaning: str, value: Any) -> Any:
        """Return what `read` returned in pixels."""
        if isinstance(value, tuple) and any(isinstance(one, Quantity) for one in value):
            pairs = zip(_PAIRS[meaning], value, strict=True)
            return tuple(self.pixels(name, along, one) for along, one in pairs)
        if not isinstance(value, Quantity):
            return value
        if meaning in ("length", "steps"):
            length = self.length(name, value)
            return math.ceil(length) if meaning == "steps" else length
        who = self.who(name, value)
        axis = self.axis(who, meaning)
        if axis.scale < 0 and meaning in ("left", "top", "start", "stop"):
            raise ArgumentValueError(
                f"{who} is an end of a range, but positions along the axis {axis.name!r} decrease: "
                "give pixels"
            )
        in_unit = value.value * self.factor(who, value, axis)
        if meaning in ("height", "width"):
            return round(in_unit / abs(axis.scale), _DECIMALS)
        if meaning in ("dy", "dx"):
            return round(in_unit / axis.scale, _DECIMALS)
        return round(axis.to_pixels(in_unit), _DECIMALS)

    def length(self, name: str, value: Quantity) -> float:
        """Return a length in all directions in pixels."""
        who, axes = self.who(name, value), self.frame.axes
        along = [value.value * self.factor(who, value, axis) / abs(axis.scale) for axis in axes]
        if not all(math.isclose(length, along[0], rel_tol=1e-6) for length in along):
            sizes = [f"{axis.name} {abs(axis.scale):g} {axis.unit}" for axis in axes]
            raise ArgumentValueError(
                f"{who} is a length in all directions, but pixels are not square "
                f"({', '.join(sizes)}): give the length in pixels"
            )
        return round(along[0], _DECIMALS)

    def who(self, name: str, value: Any) -> str:
        return f"{self.cls.__name__}: {name}={str(value)!r}"

    def axis(self, who: str, meaning: str) -> Axis:
        """Return the axis along which a number with this meaning is measured."""
        if len(self.frame.axes) < -_ALONG[meaning]:
            raise ArgumentValueError(f"{who} is a position along y, but frames have one axis only")
        return self.frame.axes[_ALONG[meaning]]

    def factor(self, who: str, value: Quantity, axis: Axis) -> float:
        """Return the factor from the unit of a value to that of an axis."""
        if axis.unit is None or not axis.is_calibrated:
            raise ArgumentValueError(
                f"{who}, but the axis {axis.name!r} of the data has no unit: give pixels, or the "
                f"axes of the data: {_GIVE_AXES}; for a signal, signal.axes_manager[...].units = "
                f"{value.unit!r}; for a DataArray, array[{axis.name!r}].attrs['units'] = "
                f"{value.unit!r}"
            )
        if axis.values is not None:
            raise ArgumentValueError(
                f"{who}, but the positions along the axis {axis.name!r} are not evenly spaced: "
                "give pixels"
            )
        try:
            return factor_at(self.frame.voltage, value.unit, axis.unit)
        except ValueError as error:
            raise ArgumentValueError(
                f"{who}, but the axis {axis.name!r} of the data is in {axis.unit}: {error}"
            ) from None


def _zero(axis: Axis) -> float:
    return round(axis.to_pixels(0.0), _DECIMALS) + 0.0


def _check_one_unit(converter: _Converter, given: Mapping[str, Any]) -> None:
    """Raise if only one radius, one side of a rectangle or one end of a range has a unit.

    0 and infinity are the same in all units; the start of a range at 0 only if the axis has nothing
    below 0.
    """
    calibrated, axis = converter.cls.calibrated, converter.frame.axes[-1]
    for meanings in (("length",), ("height", "width"), ("start", "stop")):
        values = {n: given.get(n) for n, meaning in calibrated.items() if meaning in meanings}
        first = next(((n, v) for n, v in values.items() if isinstance(v, Quantity)), None)
        for other, bare in values.items():
            if first is None or bare is None or isinstance(bare, Quantity):
                continue
            is_edge = calibrated[other] == "stop" or (
                calibrated[other] == "start" and axis.offset < 0
            )
            # a lazy number could be any
            is_number = not is_lazy(bare) and np.size(bare) == 1
            if is_number and (bare == math.inf or (bare == 0 and not is_edge)):
                continue
            steps = "channels" if "start" in meanings else "pixels"
            raise ArgumentValueError(
                f"{converter.who(*first)} has a unit, but {other}={bare!r} is a number of {steps}: "
                f"write {other}='{bare} {first[1].unit}', or give both in {steps}"
            )
