"""Run UDFs over earlier results, whose arrays have the axes of the scan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dask.array as da
import numpy as np

from udfdask.base.types import is_lazy
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Axis, with_different_names
from udfdask.geometry.labels import (
    axes_of_data_array,
    axes_of_signal,
    is_data_array,
    is_signal,
    plain_array,
)

FRAME_AXES = Axis(name="row"), Axis(name="column")
"""Axes of frames that are made of earlier results; those of new results have other names."""


def take_array(
    given: Any, names: Sequence[str], made_by: str
) -> tuple[da.Array, tuple[Axis, ...] | None]:
    """Return an array, or the first of these results that exists, as a dask array, and its axes.

    The axes are None if they are not known; `made_by` names the function whose result is expected.
    """
    if not isinstance(given, Mapping):
        return as_lazy(given), _axes_of(given)
    for name in names:
        if name in set(given):
            axes = getattr(given, "axes", {}).get(name)  # a Dataset has them in its arrays
            return (as_lazy(given[name]), axes) if axes else take_array(given[name], (), made_by)
    raise ArgumentValueError(
        f"there is no result {' or '.join(map(repr, names))}, but {', '.join(map(str, given))}: "
        f"pass the result of {made_by}"
    )


def _axes_of(given: Any) -> tuple[Axis, ...] | None:
    """Return the axes of a DataArray or a signal; None for a plain array."""
    if is_signal(given):
        return with_different_names(axes_of_signal(given), given.axes_manager.signal_dimension)
    return axes_of_data_array(given) if is_data_array(given) else None


def as_lazy(given: Any) -> da.Array:
    """Return an array of real numbers as a dask array."""
    values = plain_array(given)
    if not is_lazy(values) and not isinstance(values, np.ndarray):
        raise ArgumentTypeError(f"expected an array or a result, not {type(given).__name__}")
    array: da.Array = values if is_lazy(values) else da.from_array(np.asarray(values))
    if array.dtype.kind not in "iuf":
        raise ArgumentTypeError(f"expected an array of real numbers, not of dtype {array.dtype}")
    return array


def whole_frames(array: da.Array) -> da.Array:
    """Return an array whose two last axes are not cut into chunks."""
    whole: da.Array = array.rechunk({array.ndim - 2: -1, array.ndim - 1: -1})
    return whole
