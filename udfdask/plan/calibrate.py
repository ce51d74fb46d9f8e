"""Check the axes of a run, and give its UDFs parameters in pixels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError, UDFError
from udfdask.geometry.axes import Axis, Calibration, in_pixels, shared_unit
from udfdask.geometry.units import Quantity, as_coordinate
from udfdask.plan.declarations import new_instance
from udfdask.plan.parameters_in_pixels import parameters_in_pixels
from udfdask.udf import UDF

_MEANINGS = frozenset(
    "length lengths x y position positions left top width height start stop stretch stretch_angle "
    "shift steps".split()
)
"""What a parameter can be, as the class attribute `calibrated` says it."""


def read_calibration(
    axes: Any, unit: str | None, shape: Sequence[int], sig_dims: int
) -> Calibration:
    """Return the checked calibration of data of this shape; by default pixel numbers."""
    if not isinstance(unit, str | None):
        raise ArgumentTypeError(f"unit must be a text such as 'counts', not {unit!r}")
    if axes is None:
        return Calibration(axes=in_pixels(len(shape), sig_dims).axes, unit=unit)
    from udfdask.geometry.axis_labels import check_axes  # many runs have none

    return Calibration(axes=check_axes(axes, shape, sig_dims), unit=unit)


def with_pixels(udf: UDF, calibration: Calibration, shape: Sequence[int], sig_dims: int) -> UDF:
    """Return a UDF whose parameters are in pixels, as its class says in `calibrated`.

    `shape` is that of the data.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If a parameter has a unit that does not fit the axes.
    """
    _check_calibrated(type(udf))
    if not type(udf).calibrated:
        return udf
    from udfdask.plan.centers import with_center  # few UDFs have lengths
    from udfdask.plan.parameters_in_pixels import parameters_in_pixels

    first = len(shape) - sig_dims
    given = with_center(udf, udf._kwargs, calibration.axes[first:], shape[first:], are_all=True)
    kwargs = parameters_in_pixels(type(udf), given, calibration, sig_dims)
    same = kwargs.keys() == udf._kwargs.keys() and all(
        kwargs[name] is value for name, value in udf._kwargs.items()
    )
    return udf if same else new_instance(type(udf), kwargs)


def _check_calibrated(cls: type[UDF]) -> None:
    """Raise if the class attribute `calibrated` has a meaning that is not known."""
    if unknown := set(cls.calibrated.values()) - _MEANINGS:
        raise ArgumentTypeError(
            f"{cls.__name__}.calibrated must be a dictionary from names of parameters to one of "
            f"{sorted(_MEANINGS)}, not {unknown}"
        )


def add_given_lengths(
    error: UDFError, udfs: Iterable[UDF], calibration: Calibration, shape: Sequence[int], n_sig: int
) -> None:
    """Add to an error about pixels which lengths the user gave in a unit, and where frames lie.

    `udfs` are those of the user, and `n_sig` is the number of signal axes.
    """
    lengths = [text for udf in udfs for text in _given_lengths(udf, calibration, n_sig)]
    if lengths and error.args:
        first = len(shape) - n_sig
        ranges = map(_range, calibration.axes[first:], shape[first:])
        facts = f"{', '.join(lengths)}; frames have {' and '.join(ranges)}"
        error.args = (f"{error.args[0]}. {facts}", *error.args[1:])


def _given_lengths(udf: UDF, calibration: Calibration, n_sig: int) -> Iterator[str]:
    """Yield each single length of a UDF that has a unit, in this unit and in pixels."""
    several = ("lengths", "position", "positions", "shift")
    given = {
        name: as_coordinate(name, udf._kwargs[name])
        for name, meaning in type(udf).calibrated.items()
        if name in udf._kwargs and meaning not in several
    }
    if not any(isinstance(value, Quantity) for value in given.values()):
        return
    pixels = parameters_in_pixels(type(udf), udf._kwargs, calibration, n_sig)
    for name, value in given.items():
        if isinstance(value, Quantity):
            yield f"{name} = {value} is {pixels[name]:g} px"


def _range(axis: Axis, size: int) -> str:
    """Return the positions of an axis, in its unit."""
    first, last = axis.positions(size)[[0, -1]] if size else (axis.offset, axis.offset)
    return f"{axis.name} from {first:g} to {last:g} {axis.unit or 'px'}"


def bare_lengths(udf: UDF, sig: Sequence[Axis]) -> dict[str, float]:
    """Return the lengths and ends of ranges without a unit, where the axes `sig` share a unit."""
    if shared_unit(sig) is None:
        return {}
    meant = ("length", "width", "height", "start", "stop")
    values = {n: udf._kwargs.get(n) for n, meaning in udf.calibrated.items() if meaning in meant}
    return {
        name: float(value)
        for name, value in values.items()
        if isinstance(value, (int, float, np.number)) and 0 < value < math.inf
    }
