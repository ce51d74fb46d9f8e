"""Choose the center of UDFs: a word in place of a coordinate, 0 of the axes, or the middle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from udfdask.errors import ArgumentValueError
from udfdask.geometry.axes import Axis
from udfdask.geometry.units import CENTER_WORDS
from udfdask.udf import UDF

_DECIMALS = 9
"""Pixels are rounded to this number of decimals, as other parameters in the unit of an axis."""

Place = tuple[float, float]
"""A place (y, x) in a frame, in pixels."""


def zero_inside(axes: Sequence[Axis], sig: Sequence[int]) -> Place | None:
    """Return the place where both axes of a frame are 0; None if it is not inside of the frame.

    It has to be at least one pixel from the border: axes of plain pixel numbers, and those of an
    image that is calibrated from its corner, are 0 at the first pixel, where no beam is.
    """
    if len(axes) != 2 or any(axis.values is not None for axis in axes):
        return None
    y, x = map(_zero, axes)
    is_inside = all(1 <= place <= n - 2 for place, n in zip((y, x), sig, strict=True))
    return (y, x) if is_inside else None


def with_center(
    udf: UDF, kwargs: Mapping[str, Any], axes: Sequence[Axis], sig: Sequence[int], *, are_all: bool
) -> dict[str, Any]:
    """Return parameters of a UDF with pixels in place of the words "zero" and "middle".

    A center that is not given becomes the place where the axes are 0, if that is inside of the
    frame. Without `are_all`, `kwargs` are changes of some parameters.
    """
    cls, found = type(udf), dict(kwargs)
    for name, given in kwargs.items():
        meaning = cls.calibrated.get(name)
        if meaning in ("y", "x"):
            found[name] = _in_pixels(cls, name, given, meaning, axes, sig)
        elif meaning == "position" and _has_word(given):
            pair = zip(given, "yx", strict=True)
            found[name] = tuple(_in_pixels(cls, name, one, m, axes, sig) for one, m in pair)
    zero = zero_inside(axes, sig)
    if zero is None:
        return found
    parts = {"y": zero[0], "x": zero[1], "position": zero}
    for name in udf._center_names():
        if kwargs.get(name) is None and (are_all or name in kwargs):
            found[name] = parts.get(cls.calibrated.get(name, ""))
    return found


def _zero(axis: Axis) -> float:
    """Return the position where an axis is 0, in pixels."""
    return round(axis.to_pixels(0.0), _DECIMALS) + 0.0


def _is_word(given: Any) -> bool:
    """Return whether a coordinate is one of the words."""
    return isinstance(given, str) and given in CENTER_WORDS


def _has_word(given: Any) -> bool:
    """Return whether a pair has one of the words."""
    return isinstance(given, tuple | list) and len(given) == 2 and any(map(_is_word, given))


def _in_pixels(
    cls: type[UDF], name: str, given: Any, meaning: str, axes: Sequence[Axis], sig: Sequence[int]
) -> Any:
    """Return the pixel along y or x that a word means; anything else as it is."""
    if not _is_word(given):
        return given
    number = -2 if meaning == "y" else -1
    if len(sig) < -number:
        raise ArgumentValueError(
            f"{cls.__name__}: {name}={given!r} is a position along y, but frames have one axis only"
        )
    if given == "middle":
        return sig[number] // 2
    axis = axes[number]
    if axis.values is not None or not (axis.is_calibrated or axis.offset):
        raise ArgumentValueError(
            f"{cls.__name__}: {name}={given!r}, but the axis {axis.name!r} of the data does not "
            "say where 0 is: it has neither a unit nor an offset, or its positions are not evenly "
            "spaced. Give pixels, 'middle', or the axes of the data: axes=[...] with one "
            "udfdask.Axis(name=..., unit=..., scale=..., offset=...) for each dimension"
        )
    return _zero(axis)
