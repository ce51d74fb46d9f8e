"""Convert the parameters of a UDF from the units of the signal axes to pixels.

Ranges are turned around where positions decrease along an axis: the first pixel of a rectangle from
2 to 5 mrad is at 2 mrad if positions increase. If they decrease, 2 mrad is at its last pixel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from numbers import Real
from typing import Any

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Axis, Calibration
from udfdask.geometry.units import Quantity, as_coordinate, as_quantity, factor
from udfdask.udf import UDF

_DECIMALS = 9
"""Pixels are rounded to this number of decimals: 0.3 nm of 0.1 nm are 3, not 2.9999999999999996."""

_ROUNDING = 1e-10
"""Relative rounding error of distances that are computed in ellipses."""

_RADII = {"ri": ("r", "ro"), "rad_in": ("rad_out",)}
"""Inner radii of rings, and the names of their outer radii."""

_PAIRS = {"position": ("y", "x"), "shift": ("dy", "dx")}
"""Parameters that are pairs, and what their two numbers are."""


def parameters_in_pixels(
    cls: type[UDF],
    kwargs: Mapping[str, Any],
    calibration: Calibration,
    sig_dims: int,
    *,
    are_all: bool = True,
) -> dict[str, Any]:
    """Return parameters of a UDF in pixels; those that have no unit as they are.

    If pixels are not square, lengths in a unit change the stretch too. Without `are_all`, `kwargs`
    are changes of some parameters, and a stretch that is not among them stays as it is.
    """
    sig = calibration.axes[len(calibration.axes) - sig_dims :]
    pixels = {name: _pixels(cls, name, value, sig) for name, value in kwargs.items()}
    if any(axis.scale < 0 for axis in sig):
        pixels |= turned_ranges(kwargs, pixels, cls.calibrated, sig)
    sizes = _oblong(cls, kwargs, sig)
    _check_one_unit(cls, kwargs, sig)
    stretch = {meaning: name for name, meaning in cls.calibrated.items()}
    ratio, angle = stretch.get("stretch"), stretch.get("stretch_angle")
    if sizes is None or ratio is None or angle is None:
        return pixels
    if are_all or ratio in kwargs or angle in kwargs:
        from udfdask.masks.polar import stretch_in_pixels  # few runs have such pixels

        given = kwargs.get(ratio, 1.0), kwargs.get(angle, 0.0)
        pixels[ratio], pixels[angle] = stretch_in_pixels(*given, *sizes)
    return pixels


def _check_one_unit(cls: type[UDF], kwargs: Mapping[str, Any], sig: Sequence[Axis]) -> None:
    """Raise if one end of a range, radius of a ring or side of a rectangle has a unit alone.

    0 and infinity are the same in pixels and in all units; the start of a range at 0 only if the
    axis has nothing below 0.
    """
    names = {meaning: name for name, meaning in cls.calibrated.items()}
    lengths = {name for name, meaning in cls.calibrated.items() if meaning == "length"}
    start, stop = names.get("start"), names.get("stop")
    radii = [(ri, ro) for ri in lengths & _RADII.keys() for ro in lengths.intersection(_RADII[ri])]
    for pair in (*radii, (names.get("height"), names.get("width")), (start, stop)):
        values = {n: as_quantity(n, kwargs[n]) for n in pair if n and kwargs.get(n) is not None}
        for name, value in values.items():
            for other, bare in values.items():
                if not isinstance(value, Quantity) or not isinstance(bare, Real):
                    continue
                is_edge = other == stop or (other == start and sig[-1].offset < 0)
                if bare == math.inf or (bare == 0 and not is_edge):
                    continue
                steps = "channels" if pair == (start, stop) else "pixels"
                raise ArgumentValueError(
                    f"{_who(cls, name, value)} has a unit, but {other}={bare!r} is a number of "
                    f"{steps}: write {other}='{bare} {value.unit}', or give both in {steps}"
                )


def _oblong(
    cls: type[UDF], kwargs: Mapping[str, Any], sig: Sequence[Axis]
) -> tuple[float, float] | None:
    """Return the sizes of pixels along y and x if they differ and lengths are in a unit.

    Raise if only some of the lengths are.
    """
    values = {
        name: as_quantity(name, kwargs[name])
        for name, meaning in cls.calibrated.items()
        if meaning == "length" and kwargs.get(name) is not None
    }
    with_unit = {name: value for name, value in values.items() if isinstance(value, Quantity)}
    if not with_unit or len(sig) != 2:
        return None
    name, value = next(iter(with_unit.items()))
    who = _who(cls, name, value)
    along, are_equal = _along(who, Quantity(1.0, value.unit), sig)
    if are_equal:
        return None
    for other, bare in values.items():
        # 0 and infinity are the same in all units
        if other not in with_unit and bare not in (0, math.inf):
            raise ArgumentValueError(
                f"{who} has a unit, but {other}={bare!r} is in pixels, which are not square "
                f"({_sizes(sig)}): give both in {value.unit}, or both in pixels"
            )
    return 1 / along[0], 1 / along[1]


def _along(who: str, value: Quantity, sig: Sequence[Axis]) -> tuple[list[float], bool]:
    """Return a length in steps of each signal axis, and whether these are equal."""
    along = [_steps(who, value, axis) for axis in sig]
    return along, all(math.isclose(length, along[0], rel_tol=1e-6) for length in along)


def _sizes(sig: Sequence[Axis]) -> str:
    """Return the sizes of pixels in words."""
    return ", ".join(f"{axis.name} {abs(axis.scale):g} {axis.unit}" for axis in sig)


def _who(cls: type[UDF], name: str, value: Any) -> str:
    """Return a parameter in words."""
    return f"{cls.__name__}: {name}={str(value)!r}"


def _pixels(cls: type[UDF], name: str, given: Any, sig: Sequence[Axis]) -> Any:
    """Return the value of a parameter in pixels."""
    meaning = cls.calibrated.get(name)
    if meaning is None:
        return given
    if meaning == "lengths":
        return _lengths_in_pixels(cls, name, given, sig)
    if meaning == "positions":
        return _positions_in_pixels(cls, name, given, sig)
    if meaning == "steps":
        steps = _in_pixels(cls, name, given, "length", sig)
        return given if steps is given else math.ceil(steps)
    if meaning in _PAIRS and isinstance(given, (tuple, list)) and len(given) == 2:
        pair = [
            _in_pixels(cls, f"{name}[{k}]", value, along, sig)
            for k, (value, along) in enumerate(zip(given, _PAIRS[meaning], strict=True))
        ]
        same = all(one is other for one, other in zip(pair, given, strict=True))
        return given if same else tuple(pair)
    return _in_pixels(cls, name, given, meaning, sig)


def _lengths_in_pixels(cls: type[UDF], name: str, given: Any, sig: Sequence[Axis]) -> Any:
    """Return a dataclass whose fields are lengths, such as a template, in pixels."""
    if not is_dataclass(given) or isinstance(given, type):
        return given
    old = {field.name: getattr(given, field.name) for field in fields(given)}
    new = {n: _in_pixels(cls, f"{name}.{n}", value, "length", sig) for n, value in old.items()}
    return given if all(new[n] is value for n, value in old.items()) else replace(given, **new)


def _positions_in_pixels(cls: type[UDF], name: str, given: Any, sig: Sequence[Axis]) -> Any:
    """Return positions (y, x) in pixels, given as an array of shape (n, 2) and its unit."""
    if not (isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], str)):
        return given
    values, unit = given
    columns = [
        [_in_pixels(cls, name, (value, unit), along, sig) for value in column]
        for column, along in zip(values.T.tolist(), "yx", strict=True)
    ]
    return list(zip(*columns, strict=True))


def _in_pixels(cls: type[UDF], name: str, given: Any, meaning: str, sig: Sequence[Axis]) -> Any:
    """Return one number in pixels."""
    # `with_center` replaces words
    value = (as_coordinate if meaning in ("y", "x") else as_quantity)(name, given)
    if not isinstance(value, Quantity):
        return value
    who = _who(cls, name, value)
    if meaning == "length":
        along, are_equal = _along(who, value, sig)
        if are_equal:
            return round(along[0], _DECIMALS)
        if len(sig) != 2 or "stretch" not in cls.calibrated.values():
            raise ArgumentValueError(
                f"{who} is a length in all directions, but pixels are not square ({_sizes(sig)}): "
                "give the length in pixels"
            )
        # a circle becomes an ellipse, whose radius is the geometric mean of its half axes; a pixel
        # on the edge of the circle is not outside of the ellipse because of rounding
        return math.sqrt(along[0] * along[1]) * (1 + _ROUNDING)
    if meaning in ("stretch", "stretch_angle"):
        raise ArgumentTypeError(f"{who} has a unit: {name} must be a bare number")
    axis = _axis_of(who, meaning, sig)
    if meaning in ("height", "width"):
        return round(_steps(who, value, axis), _DECIMALS)
    if meaning in ("dy", "dx"):
        return round(math.copysign(_steps(who, value, axis), value.value * axis.scale), _DECIMALS)
    position = value.value * _factor(who, value, axis)
    return round(axis.to_pixels(position), _DECIMALS)


def _axis_of(who: str, meaning: str, sig: Sequence[Axis]) -> Axis:
    """Return the axis along which a parameter is measured."""
    number = -2 if meaning in ("y", "top", "height", "dy") else -1
    if len(sig) < -number:
        raise ArgumentValueError(f"{who} is a position along y, but frames have one axis only")
    return sig[number]


def _steps(who: str, value: Quantity, axis: Axis) -> float:
    """Return a length in steps of an axis."""
    return value.value * _factor(who, value, axis) / abs(axis.scale)


def _factor(who: str, value: Quantity, axis: Axis) -> float:
    """Return the factor from the unit of a value to that of an axis; raise if none fits."""
    if not axis.is_calibrated:
        raise ArgumentValueError(
            f"{who}, but the axis {axis.name!r} of the data has no unit: give pixels, or the axes "
            "of the data: axes=[...] with one udfdask.Axis(name=..., unit=..., scale=...) for each "
            f"dimension; for a signal, signal.axes_manager[...].units = {value.unit!r}; for a "
            f"DataArray, array[{axis.name!r}].attrs['units'] = {value.unit!r}"
        )
    if axis.values is not None:
        raise ArgumentValueError(
            f"{who}, but the positions along the axis {axis.name!r} are not evenly spaced: give "
            "pixels"
        )
    assert axis.unit is not None  # it is calibrated
    try:
        return factor(value.unit, axis.unit)
    except ValueError as error:
        raise ArgumentValueError(
            f"{who}, but the axis {axis.name!r} of the data is in {axis.unit}: {error}"
        ) from None


_SIZES = {"left": ("width", -1), "top": ("height", -2)}
"""For the first pixel along an axis: the meaning of the size of the range, and the axis."""


def turned_ranges(
    given: Mapping[str, Any],
    pixels: Mapping[str, Any],
    meanings: Mapping[str, str],
    sig: Sequence[Axis],
) -> dict[str, Any]:
    """Return the parameters that change: ends of ranges along axes whose positions decrease.

    `given` are parameters as users wrote them, and `pixels` the same in pixels. `meanings` is the
    class attribute `calibrated` of their UDF.
    """
    names = {meaning: name for name, meaning in meanings.items()}
    changed: dict[str, Any] = {}
    for meaning, (size_meaning, number) in _SIZES.items():
        first, size = names.get(meaning), names.get(size_meaning)
        if first is None or not _has_unit(given, first) or not _decreases(sig[number]):
            continue
        if size is not None and pixels.get(size) is not None:
            changed[first] = math.ceil(pixels[first]) - math.floor(pixels[size]) + 1
    start, stop = names.get("start"), names.get("stop")
    if start is None or stop is None or not _decreases(sig[-1]):
        return changed
    with_unit = [name for name in (start, stop) if _has_unit(given, name)]
    if len(with_unit) == 1:
        raise ArgumentValueError(
            f"{with_unit[0]} has a unit, and positions along the axis {sig[-1].name!r} decrease: "
            f"give {start} and {stop} in the same unit, or both in pixels"
        )
    if with_unit:
        changed[start] = math.floor(pixels[stop]) + 1
        changed[stop] = math.floor(pixels[start]) + 1
    return changed


def _has_unit(given: Mapping[str, Any], name: str) -> bool:
    """Return whether a parameter is given in a unit."""
    return isinstance(as_quantity(name, given.get(name)), Quantity)


def _decreases(axis: Axis) -> bool:
    """Return whether positions decrease along an evenly spaced axis."""
    return axis.values is None and axis.scale < 0
