"""Run UDFs over earlier results, whose arrays have the axes of the scan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dask.array as da
import numpy as np

from udfdask.base.types import is_lazy
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry import labels
from udfdask.geometry.axes import Axis, with_different_names
from udfdask.results.result import Result
from udfdask.run.run_with_parameters import as_dask, in_kind_of, run_with_parameters
from udfdask.udf import UDF

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
    if labels.is_signal(given):
        sig_dims = given.axes_manager.signal_dimension
        return with_different_names(labels.axes_of_signal(given), sig_dims)
    return labels.axes_of_data_array(given) if labels.is_data_array(given) else None


def as_lazy(given: Any) -> da.Array:
    """Return an array of real numbers as a dask array."""
    values = labels.plain_array(given)
    if not is_lazy(values) and not isinstance(values, np.ndarray):
        raise ArgumentTypeError(f"expected an array or a result, not {type(given).__name__}")
    array: da.Array = values if is_lazy(values) else da.from_array(np.asarray(values))
    if array.dtype.kind not in "iuf":
        raise ArgumentTypeError(f"expected an array of real numbers, not of dtype {array.dtype}")
    return array


def run_over(
    function: Callable[..., Any], udf: type[UDF], frames: Any, *, of: Any, scan: Any, **options: Any
) -> Result:
    """Run a UDF over frames made of the array `of`, by default on the axes of its scan."""
    if scan is not None:
        options.setdefault("axes", with_different_names((*scan, *FRAME_AXES), 2))
    whole = as_dask(frames).rechunk({frames.ndim - 2: -1, frames.ndim - 1: -1})
    return run_with_parameters(function, udf, in_kind_of(of, whole), sig_dims=2, **options)
