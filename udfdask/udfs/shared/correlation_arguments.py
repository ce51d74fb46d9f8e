"""Check the parameters of `CorrelationUDF`."""

from __future__ import annotations

import math
from operator import index
from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.labeled_values import is_data_array, plain_array, vectors_of
from udfdask.geometry.units import Quantity, as_quantity
from udfdask.masks import DiskTemplate
from udfdask.types import AnyArray
from udfdask.udf.aux_data import AuxData
from udfdask.udf.params import is_lazy


def checked_peaks(given: Any) -> Any:
    """Return positions rounded to whole pixels, shape (n, 2), or an unchanged dask array.

    An array with a unit is returned with it.
    """
    given = plain_array(vectors_of(given, "peaks"))
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], str):
        if is_lazy(given[0]):
            raise ArgumentTypeError(
                "peaks with a unit must be numbers, not a dask array: compute them first"
            )
        peaks = _numbers("peaks", given[0])
        checked_peaks(peaks)  # the shape
        return peaks, given[1]
    peaks = given if is_lazy(given) else _numbers("peaks", given)
    if peaks.ndim != 2 or peaks.shape[1] != 2 or not peaks.shape[0] > 0:
        raise ArgumentValueError(
            f"peaks must have the shape (n_peaks, 2), with at least one peak, not {peaks.shape}"
        )
    return peaks if is_lazy(peaks) else np.rint(peaks).astype(np.int64)


def checked_template(given: Any) -> Any:
    """Return a template: a `DiskTemplate`, a NumPy array or a dask array."""
    if isinstance(given, DiskTemplate):
        return given
    if is_data_array(given):
        raise ArgumentTypeError(
            "template is a DataArray, which has no center: pass its .values, (height, width)"
        )
    template = given if is_lazy(given) else _numbers("template", plain_array(given))
    if template.ndim != 2 or not all(n > 0 for n in template.shape):
        raise ArgumentValueError(
            f"template must be a DiskTemplate or an array (height, width), not {given!r:.60}: for "
            "a disk write DiskTemplate(radius=...)"
        )
    return template


def checked_steps(given: Any) -> Any:
    """Return the search distance in pixels, or with its unit."""
    value = as_quantity("steps", given)
    if isinstance(value, Quantity):
        return value
    try:
        steps = index(given) if value is given else math.ceil(value)  # "2 px"
    except TypeError:
        raise ArgumentTypeError(
            f"steps must be an integer number of pixels, not {given!r}"
        ) from None
    if steps < 2:
        raise ArgumentValueError(
            f"steps must be at least 2 pixels, not {steps}: the 5 x 5 pixels of a maximum must fit"
        )
    return steps


def checked_shift(given: Any) -> Any:
    """Return a shift (y, x), aux data of shifts, a lazy shift, or None.

    A pair with a unit is returned as it is.
    """
    hint = 'for one pair per frame pass UDF.aux_data(shifts, kind="nav", extra_shape=(2,))'
    if given is None:
        return None
    if isinstance(given, AuxData):
        if given.kind == "sig" or given.extra_shape != (2,) or given.dtype.kind not in "biuf":
            raise ArgumentValueError(
                f"zero_shift must hold real numbers (y, x), not aux data of kind {given.kind!r}, "
                f"extra_shape {given.extra_shape} and dtype {given.dtype}: {hint}"
            )
        return given
    if isinstance(given, (tuple, list)) and len(given) == 2:
        pair = [as_quantity(f"zero_shift[{k}]", value) for k, value in enumerate(given)]
        if any(isinstance(value, Quantity) for value in pair):
            return tuple(pair)
    given = plain_array(vectors_of(given, "zero_shift"))
    shift = given if is_lazy(given) else _numbers("zero_shift", given)
    if shift.shape != (2,):
        raise ArgumentValueError(
            f"zero_shift must be one pair (y, x), not an array of shape {shift.shape}: {hint}"
        )
    return shift


def _numbers(name: str, value: Any) -> AnyArray:
    try:
        array = np.asarray(value)
    except ValueError as e:  # ragged
        raise ArgumentValueError(f"{name} must be an array of numbers: {e}") from None
    if array.dtype.kind not in "biuf" and array.size:
        raise ArgumentTypeError(
            f"{name} must hold real numbers, not {type(value).__name__} of dtype {array.dtype}"
        )
    if not np.isfinite(array).all():
        raise ArgumentValueError(f"{name} must hold finite numbers, but some are NaN or infinite")
    return array
