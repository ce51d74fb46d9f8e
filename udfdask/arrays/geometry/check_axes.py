"""Check the axes that a user gives for data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from udfdask.arrays.geometry.axes import Axis
from udfdask.errors import ArgumentTypeError, ArgumentValueError


def check_axes(axes: Any, shape: Sequence[int], sig_dims: int) -> tuple[Axis, ...]:
    """Return the axes for data of this shape; raise unless there is a valid one per dimension."""
    if isinstance(axes, (str, bytes)) or not isinstance(axes, Sequence):
        raise ArgumentTypeError(
            f"axes must be a list of udfdask.Axis, one per dimension of the data, got {axes!r}"
        )
    for axis in axes:
        if not isinstance(axis, Axis):
            raise ArgumentTypeError(
                f"axes must contain udfdask.Axis, got {axis!r}: write "
                "udfdask.Axis(name='x', unit='nm', scale=0.5)"
            )
    if len(axes) != len(shape):
        raise ArgumentValueError(
            f"axes must contain one Axis per dimension of the data, {len(shape) - sig_dims} of the "
            f"scan and then {sig_dims} of a frame, got {len(axes)}"
        )
    names = [axis.name for axis in axes]
    if len(set(names)) < len(names):
        raise ArgumentValueError(f"axes have the names {names}: each needs a name of its own")
    for axis, n in zip(axes, shape, strict=True):
        _check_positions(axis, n)
    return tuple(axes)


def _check_positions(axis: Axis, n: int) -> None:
    """Raise unless an axis has a label and a value for each of `n` positions, if it has any."""
    if axis.labels is not None and len(axis.labels) != n:
        raise ArgumentValueError(
            f"the axis {axis.name!r} has {len(axis.labels)} labels, the data have {n} positions"
        )
    if axis.values is not None and len(axis.values) != n:
        raise ArgumentValueError(
            f"the axis {axis.name!r} has {len(axis.values)} values, the data have {n} positions"
        )
