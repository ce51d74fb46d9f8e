"""Check the shifts of masks: one shift for all frames, or one for each frame."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from udfdask.arrays.geometry.labeled_values import (
    check_in_pixels,
    check_is_one_array,
    is_labeled,
    plain_array,
    vectors_of,
)
from udfdask.arrays.geometry.shapes import Shape
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.types import AnyArray
from udfdask.udf import UDF
from udfdask.udf.aux_data import AuxData

EXPECTED = "shifts must be a pair (y, x), an array of shape (*nav, 2), or UDF.aux_data(...) of it"


def as_shifts(given: Any) -> Any:
    """Return shifts as a tuple of whole pixels, one per signal axis, or as aux data or lazy."""
    if given is None:
        return None
    if isinstance(given, AuxData):
        if given.kind != "nav" or len(given.extra_shape) != 1:
            raise ArgumentValueError(
                f"{EXPECTED} of kind 'nav' with extra_shape=(2,), not of kind {given.kind!r} with "
                f"extra_shape={given.extra_shape}"
            )
        if given.dtype.kind not in "iuf":
            raise ArgumentTypeError(f"{EXPECTED}, of numbers, not of dtype {given.dtype}")
        return given
    check_is_one_array("shifts", given, "raw_shifts")
    check_in_pixels("shifts", given, "raw_shifts")
    labeled = vectors_of(given, "shifts")
    given = plain_array(labeled)
    if getattr(given, "ndim", 1) > 1:
        values = labeled if is_labeled(labeled) else given
        return as_shifts(UDF.aux_data(values, "nav", given.shape[-1:], given.dtype))
    if hasattr(given, "__dask_graph__") and hasattr(given, "shape"):
        return given  # one shift, which is checked when it is computed
    try:
        values = np.atleast_1d(np.asarray(given))
    except ValueError:
        values = np.empty(0)
    if values.ndim != 1 or not values.size or values.dtype.kind not in "iuf":
        raise ArgumentTypeError(f"{EXPECTED}, not {given!r}")
    return tuple(whole_pixels(values[np.newaxis])[0].tolist())


def check_axes(shifts: Any, sig: Shape) -> None:
    """Raise unless a shift has one number for each signal axis."""
    if shifts is None:
        return
    axes = shifts.extra_shape[0] if isinstance(shifts, AuxData) else math.prod(np.shape(shifts))
    if axes != len(sig):
        raise ArgumentValueError(
            f"shifts have {axes} numbers each, but a frame of shape {tuple(sig)} has {len(sig)} "
            "axes: one number of pixels along each is needed"
        )


def check_finite(shifts: Any, nav: Shape, roi: AnyArray | None) -> None:
    """Raise if the shift of a frame in the ROI is not finite; lazy shifts are checked later."""
    if not isinstance(shifts, AuxData) or shifts.is_lazy or shifts.data is None:
        return
    if shifts.data.size == nav.size * shifts.extra_shape[0]:  # the plan refuses another size
        rows = np.reshape(shifts.data, (nav.size, -1))
        whole_pixels(rows if roi is None else rows[roi.reshape(-1)])


def whole_pixels(shifts: AnyArray) -> AnyArray:
    """Cut shifts, shape (n, sig dims), to whole pixels, int64."""
    if shifts.dtype.kind == "f":
        wrong = ~np.isfinite(shifts).all(axis=1)
        if wrong.any():
            raise ArgumentValueError(
                f"shifts must be finite, in pixels, not {tuple(shifts[wrong][0].tolist())}: use 0 "
                "for frames without a known shift, or exclude these frames with roi="
            )
    far = 1 << 40  # outside any frame, and in the range of int64
    return np.clip(shifts, -far if shifts.dtype.kind != "u" else 0, far).astype(np.int64)
