"""Read the halo of a UDF, and check it."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.halo import BOUNDARIES, Boundary, Halo
from udfdask.udf import UDF

MOST = 1_000_000
"""Largest number of frames on one side."""

_EXAMPLES = (
    "an int for all navigation axes, or a tuple with an int or a pair (before, after) for each of "
    f"them, such as 1, (1, 2) or ((0, 1), 0), from 0 to {MOST}"
)


def read_halo(udf: UDF, nav_dims: int) -> Halo:
    """Return the halo of a UDF that has one, over data with this number of navigation axes.

    Raises
    ------
    ArgumentTypeError
        If `halo` is not of its type.
    ArgumentValueError
        If the halo is negative or has another number of axes, or if there is no such boundary.
    """
    name, given = type(udf).__name__, udf.halo
    if udf.boundary not in BOUNDARIES:
        raise ArgumentValueError(
            f"{name}.boundary must be one of {', '.join(map(repr, BOUNDARIES))}, not "
            f"{udf.boundary!r}"
        )
    if udf.contiguous_nav or udf.whole_frames:
        raise ArgumentValueError(
            f"{name} has a halo, and contiguous_nav or whole_frames: these are about tiles and "
            "flattened partitions, leave them out"
        )
    wrong = f"{name}.halo = {given!r}: it must be {_EXAMPLES}"
    axes = given if isinstance(given, (tuple, list)) else (given,) * nav_dims
    if len(axes) != nav_dims:
        raise ArgumentValueError(
            f"{name}.halo = {given!r} is for {len(axes)} navigation axes, but the data have "
            f"{nav_dims}: it must be {_EXAMPLES}"
        )
    sides = [tuple(axis) if isinstance(axis, (tuple, list)) else (axis, axis) for axis in axes]
    for pair in sides:
        if len(pair) != 2 or not all(_is_int(n) for n in pair):
            raise ArgumentTypeError(wrong)
        if not all(0 <= n <= MOST for n in pair):
            raise ArgumentValueError(wrong)
    return Halo(
        sides=tuple((int(before), int(after)) for before, after in sides),
        boundary=cast(Boundary, udf.boundary),
        in_roi=not udf.neighbors_outside_roi,
    )


def _is_int(value: Any) -> bool:
    """Return whether a value is an int, and not a bool."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
