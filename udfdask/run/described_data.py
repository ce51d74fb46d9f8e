"""Take apart data that know their axes, such as an opened file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from udfdask.errors import ArgumentValueError
from udfdask.geometry.axes import Axis

DEFAULT_SIG_DIMS = 2
"""Number of signal axes of data that do not know it: detector frames."""


@runtime_checkable
class DescribedData(Protocol):
    """An array that knows its axes, such as `udfdask.io.OpenedFile`."""

    @property
    def array(self) -> Any:
        """The data, shape (*nav, *sig)."""

    @property
    def sig_dims(self) -> int:
        """Number of signal axes."""

    @property
    def axes(self) -> tuple[Axis, ...]:
        """One axis for each dimension of the array."""

    @property
    def unit(self) -> str | None:
        """Unit of the values; None if it is not known."""


def take_apart(
    data: Any, sig_dims: int | None, options: Mapping[str, Any]
) -> tuple[Any, int, dict[str, Any]]:
    """Return an array, its number of signal axes, and options of a run with its axes and unit.

    `axes` among the options may be a `Result` or an opened file, whose axes are taken. With an
    opened file, the options also have `present`, the mask of the positions that have a frame.
    """
    array, chosen = data, dict(options)
    if _knows_axes(data):
        array = data.array
        sig_dims = data.sig_dims if sig_dims is None else sig_dims
        if chosen.get("axes") is None:
            chosen["axes"] = data
    source = chosen.get("axes")
    described: Any = getattr(source, "calibration", source)
    if hasattr(described, "axes") and hasattr(described, "unit"):
        _check_shape(source, array)
        chosen["axes"] = described.axes
        if chosen.get("unit") is None:
            chosen["unit"] = described.unit
    sources: tuple[Any, ...] = (data, source)
    for each in sources:
        if _knows_axes(each) and hasattr(each, "present"):
            # a mask without axes stands for all positions
            chosen["present"] = np.ones((), bool) if each.present is None else each.present
            break
    return array, DEFAULT_SIG_DIMS if sig_dims is None else sig_dims, chosen


def _check_shape(source: Any, array: Any) -> None:
    """Raise if axes are taken from something that describes data of another shape."""
    if _knows_axes(source):
        shape, what = source.array.shape, "an opened file"
        remedy = "take the part of the file itself, such as opened[2:5, ::2], which has its axes"
    else:
        shape, what = (*source.nav_shape, *source.sig_shape), "a result"
        remedy = "pass a list of Axis; Axis.sliced makes the axis of a part"
    given = getattr(array, "shape", shape)
    if given != shape:
        raise ArgumentValueError(
            f"axes= is {what} over data of shape {shape}, but the array has the shape {given}, and "
            f"its positions are not known: {remedy}"
        )


def _knows_axes(data: Any) -> bool:
    """Return whether data are an array with a description; a dask array is none."""
    return not hasattr(data, "__dask_graph__") and isinstance(data, DescribedData)
