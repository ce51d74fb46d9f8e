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
    "them, such as 1, (1, 2) or ((0, 1), 0)"
)


def read_halo(udf: UDF, nav_dims: int) -> Halo:
    """Return the halo of a UDF that has one, over data with this number of navigation axes.

    Raises
    ------
    ArgumentTypeError
        If `halo`, `boundary` or `neighbors_outside_roi` is not of its type.
    ArgumentValueError
        If the halo is negative or has another number of axes, or if there is no such boundary.
    """
    name, given = type(udf).__name__, udf.halo
    boundary: Any = udf.boundary
    if boundary not in BOUNDARIES:
        raise ArgumentValueError(
            f"{name}.boundary must be one of {', '.join(map(repr, BOUNDARIES))}, not {boundary!r}"
        )
    outside: Any = udf.neighbors_outside_roi
    if not isinstance(outside, (bool, np.bool_)):
        raise ArgumentTypeError(
            f"{name}.neighbors_outside_roi must be True or False, not {outside!r}"
        )
    if udf.contiguous_nav or udf.whole_frames:
        raise ArgumentValueError(
            f"{name} has a halo, and contiguous_nav or whole_frames: these are about tiles and "
            "flattened partitions, leave them out"
        )
    where = f"{name}.halo"
    axes = given if isinstance(given, (tuple, list)) else (given,) * nav_dims
    if len(axes) != nav_dims:
        raise ArgumentValueError(
            f"{where} = {given!r} is for {len(axes)} navigation axes, but the data have "
            f"{nav_dims}: it must be {_EXAMPLES}"
        )
    sides = tuple(_side(axis, given, where) for axis in axes)
    return Halo(sides=sides, boundary=cast(Boundary, boundary), in_roi=not outside)


def _side(axis: Any, given: Any, where: str) -> tuple[int, int]:
    """Return the frames before and after a position along one axis."""
    pair = axis if isinstance(axis, (tuple, list)) else (axis, axis)
    numbers = [isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in pair]
    if len(pair) != 2 or not all(numbers):
        raise ArgumentTypeError(f"{where} = {given!r}: it must be {_EXAMPLES}")
    if min(pair) < 0:
        raise ArgumentValueError(f"{where} = {given!r}: numbers of frames cannot be negative")
    if max(pair) > MOST:
        raise ArgumentValueError(f"{where} = {given!r}: there cannot be more than {MOST} frames")
    return int(pair[0]), int(pair[1])
