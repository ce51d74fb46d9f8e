"""Turn ranges that are given in units around, where positions decrease along an axis.

The first pixel of a rectangle from 2 to 5 mrad is at 2 mrad if positions increase. If they
decrease, 2 mrad is at its last pixel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from udfdask.errors import ArgumentValueError
from udfdask.geometry.axes import Axis
from udfdask.geometry.units import Quantity, as_quantity

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
