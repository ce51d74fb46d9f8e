"""Read axes and units of HyperSpy's signals, from files or in memory."""

from __future__ import annotations

import math
from typing import Any

from udfdask.geometry.axes import Axis, axis_of_values
from udfdask.geometry.units import unit_of_quantity


def read_axis(axis: Any) -> Axis:
    """Return the name, unit and scale of HyperSpy's axis, if they are known."""
    # HyperSpy marks unknown values with an object of the package traits, not with None.
    name = axis.name if isinstance(axis.name, str) and axis.name != "None" else ""
    unit = axis.units if isinstance(axis.units, str) and axis.units else None
    if not axis.is_uniform:
        return axis_of_values(name, axis.axis, unit)
    scale, offset = float(axis.scale), float(axis.offset)
    if not (math.isfinite(scale) and math.isfinite(offset) and scale):
        return Axis(name=name)  # positions are numbered, as in axes of other files
    return Axis(name=name, unit=unit, scale=scale, offset=offset)


def read_unit(signal: Any) -> str | None:
    """Return the unit of the data of a signal; None if it is not known."""
    return unit_of_quantity(signal.metadata.get_item("Signal.quantity", default=None))
