"""Read the centers and radii that users pass to UDFs; a run converts those in a unit to pixels."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from udfdask.base.types import is_lazy
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
    return checks.pair(name, value, "a position (y, x) in pixels, 'zero' or 'middle'")


def read_center(center: Any, cy: Any, cx: Any) -> tuple[Any, Any]:
    """Return the coordinates (cy, cx) of a common center, given in one of two ways, or None."""
    if center is not None:
        if cy is not None or cx is not None:
            raise ArgumentValueError(
                f"center={center!r} gives both coordinates: leave out cy and cx, or center"
            )
        cy, cx = _pair("center", center)
    cy, cx = as_coordinate("cy", cy), as_coordinate("cx", cx)
    for name, value in (("cy", cy), ("cx", cx)):
        if value is not None and not is_open(value):
            checks.number(name, value)
    return cy, cx


def as_vectors(name: str, given: Any, source: str, *, length: int | None = None) -> Any:
    """Return aux data for an array with a vector of pixels for each frame.

    `source` is the result of `CoMUDF` that has such vectors. Without a `length` of the vectors, a
    single vector is returned as an array, which can be lazy.
    """
    values = read = given
    if not isinstance(given, AuxData):
        check_is_one_array(name, given, source)
        check_in_pixels(name, given, source)
        values = vectors_of(given, name)
        read = plain_array(values)
        if not hasattr(read, "ndim"):
            try:
                read = np.asarray(read)
            except ValueError:  # ragged
                read = np.asarray(None)
    is_one = length is None and not isinstance(given, AuxData) and read.ndim < 2
    if is_one and is_lazy(read):
        return read  # checked when it is computed
    if read.dtype.kind not in "iuf":
        kind, shown = f", not {type(given).__name__}", repr(given)
        if hasattr(given, "dtype"):
            kind, shown = "", f"of dtype {given.dtype}"
        raise ArgumentTypeError(
            f"{name} must be {'a pair (y, x), ' if length is None else ''}an array of numbers "
            f"(*nav, 2), real numbers of pixels{kind}, or UDF.aux_data(...) of numbers, not {shown}"
        )
    if is_one:
        return read
    if not isinstance(given, AuxData):
        values = values if is_labeled(values) else read
        read = UDF.aux_data(values, "nav", read.shape[-1:], read.dtype)
    if read.kind != "nav" or len(read.extra_shape) != 1 or length not in (None, *read.extra_shape):
        is_aux = isinstance(given, AuxData)
        shown = (
            f"of kind {read.kind!r} with extra_shape={read.extra_shape}" if is_aux else read.shape
        )
        raise ArgumentValueError(
            f"{name} must hold (y, x) for each frame, an array of shape (*nav, 2), not {shown}, or "
            "aux data of kind 'nav' with extra_shape (2,)"
        )
    return read


def as_centers(centers: Any, **common: Any) -> AuxData | None:
    """Return a center for each frame as aux data; `common` parameters of a center exclude it."""
    if centers is None:
        return None
    if any(value is not None for value in common.values()):
        raise ArgumentValueError(
            f"centers gives the center of each frame: leave out {' and '.join(common)}, or centers"
        )
    aux: AuxData = as_vectors("centers", centers, "raw_com", length=2)
    return aux


def read_length(name: str, given: Any, *, positive: bool = False) -> Any:
    """Return a length in pixels, or with its unit, or None; raise if it is negative."""
    value = as_quantity(name, given)
    if value is None or isinstance(value, Quantity):
        return value
    return checks.radius(name, value, positive=positive)


def read_radii(*, finite: bool = True, **given: Any) -> tuple[Any, Any]:
    """Return an outer and an inner radius, given in this order by name, also in a unit or lazy.

    Raise if one is negative or not a number, or the inner radius is not smaller. None as the outer
    radius stands for the whole frame, as the inner radius for 0.
    """
    names = name, inner_name = cast(tuple[str, str], tuple(given))
    outer, least = (as_quantity(*item) for item in given.items())
    inner: Any = 0 if least is None else least
    is_known = not (outer is None or is_open(outer))
    are_quantities = isinstance(outer, Quantity) and isinstance(inner, Quantity)
    if is_known and not is_open(inner):
        checks.radii(outer, inner, names=names, finite=finite)
    elif is_known:
        checks.radius(name, outer, finite=finite)
    elif not is_open(inner):
        checks.radius(inner_name, inner)
    elif are_quantities and outer.unit == inner.unit and inner.value >= outer.value:
        checks.raise_swapped(str(outer), str(inner), names=names)
    return outer, least
