"""Read the centers and radii that users pass to UDFs; a run converts those in a unit to pixels."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.labeled_values import (
    check_in_pixels,
    check_is_one_array,
    is_labeled,
    plain_array,
    vectors_of,
)
from udfdask.geometry.units import CENTER_WORDS, Quantity, as_coordinate, as_quantity
from udfdask.masks import checks
from udfdask.masks.bins import number_of_bins
from udfdask.udf import UDF
from udfdask.udf.aux_data import AuxData
from udfdask.udf.params import is_lazy


def is_open(value: Any) -> bool:
    """Return whether a parameter is a number only later: lazy, in a unit, or a word."""
    return is_lazy(value) or isinstance(value, Quantity | str)


def quantities(**given: Any) -> tuple[Any, ...]:
    """Return parameters, texts such as "10 mrad" as quantities."""
    return tuple(as_quantity(name, value) for name, value in given.items())


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
    if not isinstance(centers, AuxData):
        check_is_one_array("centers", centers, "raw_com")
        check_in_pixels("centers", centers, "raw_com")
        centers = vectors_of(centers, "centers")
        array = _array(plain_array(centers))
        if array.ndim < 1 or array.shape[-1] != 2:
            raise ArgumentValueError(
                f"centers must hold (y, x) for each frame, shape (*nav, 2), not {array.shape}"
            )
        labeled = centers if is_labeled(centers) else array
        _check_numbers(array.dtype)
        centers = UDF.aux_data(labeled, kind="nav", extra_shape=(2,), dtype=array.dtype)
    if centers.kind != "nav" or centers.extra_shape != (2,):
        raise ArgumentValueError(
            "centers must be aux data of kind 'nav' with extra_shape (2,), (y, x) for each frame, "
            f"not of kind {centers.kind!r} with extra_shape {centers.extra_shape}"
        )
    _check_numbers(centers.dtype)
    aux: AuxData = centers
    return aux


def _array(centers: Any) -> Any:
    """Return centers as a NumPy or dask array; aux data refuse masked ones, with a remedy."""
    if (is_lazy(centers) and hasattr(centers, "ndim")) or isinstance(centers, np.ma.MaskedArray):
        return centers
    try:
        array = np.asarray(centers)
    except ValueError:  # ragged
        array = np.asarray(None)
    if array.dtype.kind not in "biufc":
        raise ArgumentTypeError(
            f"centers must be an array of numbers (*nav, 2), not {type(centers).__name__}"
        )
    return array


def _check_numbers(dtype: np.dtype[Any]) -> None:
    if dtype.kind not in "iuf":
        raise ArgumentTypeError(f"centers must be real numbers of pixels, not {dtype}")


def check_radii(r: Any, ri: Any, *, finite: bool) -> None:
    """Raise if a radius is not a number or negative, or the inner radius is not smaller.

    None as the outer radius stands for the whole frame, as the inner radius for 0.
    """
    ri = 0 if ri is None else ri
    if not (r is None or is_open(r)):
        checks.radius("r", r, finite=finite)
    if not is_open(ri):
        checks.radius("ri", ri)
    if not (r is None or is_open(r) or is_open(ri)):
        checks.radii(r, ri, names=("r", "ri"), finite=finite)
    check_radii_in_unit(r, ri, names=("r", "ri"))


def check_radii_in_unit(outer: Any, inner: Any, *, names: tuple[str, str]) -> None:
    """Raise if both radii are in the same unit, and the inner radius is not smaller."""
    if not (isinstance(outer, Quantity) and isinstance(inner, Quantity)):
        return
    if outer.unit == inner.unit and inner.value >= outer.value:
        checks.raise_swapped(str(outer), str(inner), names=names)


def check_rings(r: Any, ri: Any, n_bins: Any) -> None:
    """Raise if the radii or the number of rings are invalid."""
    for name, value in (("r", r), ("ri", ri), ("n_bins", n_bins)):
        if is_lazy(value):
            raise ArgumentTypeError(
                f"{name} must be a number, not a lazy {type(value).__name__}: compute it first"
            )
    check_radii(r, ri, finite=True)
    number_of_bins(n_bins, 1, 0)
