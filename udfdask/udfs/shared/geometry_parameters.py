"""Read the centers and radii that users pass to UDFs; a run converts those in a unit to pixels."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.labels import (
    check_in_pixels,
    check_is_one_array,
    is_labeled,
    plain_array,
    vectors_of,
)
from udfdask.geometry.units import CENTER_WORDS, Quantity, as_coordinate, as_quantity
from udfdask.masks import checks
from udfdask.types import is_lazy
from udfdask.udf import UDF
from udfdask.udf.aux_data import AuxData


def is_open(value: Any) -> bool:
    """Return whether a parameter is a number only later: lazy, in a unit, or a word."""
    return is_lazy(value) or isinstance(value, Quantity | str)


def check_position(name: str, value: Any) -> tuple[Any, Any]:
    """Return a position (y, x), numbers of pixels as floats; raise if it is not a pair of them."""
    pair = [as_coordinate(f"{name}[{k}]", one) for k, one in enumerate(_pair(name, value))]
    y, x = (
        one if isinstance(one, Quantity | str) else checks.number(f"{name}[{k}]", one)
        for k, one in enumerate(pair)
    )
    return y, x


def _pair(name: str, value: Any) -> tuple[Any, Any]:
    """Return the members of a pair (y, x); a word stands for both."""
    if isinstance(value, str):
        if value in CENTER_WORDS:
            return value, value
        if value in ("find", "com"):
            method = ", method='com'" if value == "com" else ""
            raise ArgumentValueError(
                f"{name}={value!r} would read all data, but a run is planned without reading: "
                "write pattern = udfdask.run_udf(data, SumUDF())['intensity'] and then "
                f"{name}=find_center(pattern{method}), both from udfdask.udfs"
            )
    try:
        y, x = value
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"{name} must be a position (y, x) in pixels, 'zero' or 'middle', not {value!r}"
        ) from None
    return y, x


def read_center(center: Any, cy: Any, cx: Any) -> tuple[Any, Any]:
    """Return the coordinates (cy, cx) of a common center, given in one of two ways, or None."""
    if center is not None:
        if cy is not None or cx is not None:
            raise ArgumentValueError(
                f"center={center!r} gives both coordinates: leave out cy and cx, or center"
            )
        cy, cx = _pair("center", center)
    cy, cx = (None if c is None else as_coordinate(n, c) for n, c in (("cy", cy), ("cx", cx)))
    for name, value in (("cy", cy), ("cx", cx)):
        if value is not None and not is_open(value):
            checks.number(name, value)
    return cy, cx


def as_vectors(name: str, given: Any, source: str) -> Any:
    """Return aux data for an array with a vector for each frame; one vector as an array.

    Lazy arrays without axes, such as a single lazy vector, stay as they are. `source` is the result
    of `CoMUDF` that has such vectors in pixels.
    """
    if isinstance(given, AuxData):
        return given
    check_is_one_array(name, given, source)
    check_in_pixels(name, given, source)
    labeled = vectors_of(given, name)
    array = plain_array(labeled)
    if not hasattr(array, "ndim"):
        try:
            array = np.asarray(array)
        except ValueError:  # ragged
            array = np.asarray(None)
    if array.ndim < 2:
        return array
    values = labeled if is_labeled(labeled) else array
    return UDF.aux_data(values, "nav", array.shape[-1:], array.dtype)


def as_centers(centers: Any, **common: Any) -> AuxData | None:
    """Return a center for each frame as aux data; raise unless there are two numbers for each.

    `common` are the parameters for a common center, which exclude these.
    """
    if centers is None:
        return None
    if any(value is not None for value in common.values()):
        raise ArgumentValueError(
            f"centers gives the center of each frame: leave out {' and '.join(common)}, or centers"
        )
    aux = as_vectors("centers", centers, "raw_com")
    if aux.dtype.kind not in "iuf":
        raise ArgumentTypeError(
            f"centers must be an array of numbers (*nav, 2), not {type(centers).__name__}: "
            f"they are real numbers of pixels, not of dtype {aux.dtype}"
        )
    if not isinstance(aux, AuxData) and aux.shape == (2,):
        aux = UDF.aux_data(aux, "nav", (2,), aux.dtype)
    if not isinstance(aux, AuxData) or aux.kind != "nav" or aux.extra_shape != (2,):
        raise ArgumentValueError(
            "centers must hold (y, x) for each frame, an array of shape (*nav, 2), not "
            f"{aux.shape}, or aux data of kind 'nav' with extra_shape (2,)"
        )
    return aux


def read_radii(*, finite: bool = True, **given: Any) -> tuple[Any, Any]:
    """Return an outer and an inner radius, given in this order by name, also in a unit or lazy.

    Raise if one is negative or not a number, or the inner radius is not smaller. None as the outer
    radius stands for the whole frame, as the inner radius for 0.
    """
    (name, outer), (inner_name, inner) = given.items()
    outer, least = as_quantity(name, outer), as_quantity(inner_name, inner)
    inner, is_known = 0 if least is None else least, not (outer is None or is_open(outer))
    if is_known:
        checks.radius(name, outer, finite=finite)
    if not is_open(inner):
        checks.radius(inner_name, inner)
        if is_known:
            checks.radii(outer, inner, names=(name, inner_name), finite=finite)
    is_open_pair = isinstance(outer, Quantity) and isinstance(least, Quantity)
    if is_open_pair and outer.unit == least.unit and least.value >= outer.value:
        checks.raise_swapped(str(outer), str(least), names=(name, inner_name))
    return outer, least
