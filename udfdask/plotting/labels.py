"""Describe results before they have values, to decide whether and how to draw them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from udfdask.geometry.axes import Axis
from udfdask.geometry.labels import Place, check_axes

Described = Any
"""What knows the results of one UDF before they are computed: a `Result` or its metadata."""

_NUMBERS = "biufc"


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Name, shape and axes of one result."""

    title: str
    """Title of the result in a picture."""
    kind: str
    """Shaped like the scan (`nav`), like a frame (`sig`), or neither (`single`)."""
    shape: tuple[int, ...]
    """Shape of the full result."""
    dtype: np.dtype[Any]
    """Dtype of the result."""
    axes: tuple[Axis, ...]
    """One axis per dimension."""
    n_leading: int
    """Number of dimensions that belong to the scan or the frame; the others are extra."""
    unit: str | None = None
    """Unit of the values; None if it is not known."""

    @property
    def obstacle(self) -> str:
        """The reason why the result cannot be drawn; empty if it can."""
        if self.dtype.kind not in _NUMBERS:
            return f"it contains {self.dtype} values, not numbers"
        size = math.prod(self.shape)
        return "" if size > 1 else "it is one number" if size else "it is empty"


def label_result(
    described: Described, name: str, place: Place, data_axes: Sequence[Axis] | None
) -> Labels:
    """Return the labels of a result, or of its part with a label; `data_axes` are of the data."""
    nav, sig = tuple(described.nav_shape), tuple(described.sig_shape)
    axes = described.calibration.axes
    if data_axes is not None:
        axes = check_axes(data_axes, (*nav, *sig), len(sig))
    leading = {"nav": (nav, axes[: len(nav)]), "sig": (sig, axes[len(nav) :])}
    spec = described.buffers[place.result]
    shape, own = leading.get(spec.kind, ((), ()))
    part = place.of(np.broadcast_to(np.empty((), spec.dtype), (*shape, *spec.extra_shape)))
    # positions in an extra dimension are indices, not pixels
    extra = (a if a.unit or a.labels else replace(a, unit="index") for a in place.axes)
    return Labels(
        title=name,
        kind=str(spec.kind),
        shape=part.shape,
        dtype=part.dtype,
        axes=(*own, *extra),
        n_leading=len(shape),
        unit=described.units[place.result],
    )


def missing_as_nan(
    values: np.ndarray[Any, Any], valid: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """Return an array with NaN at invalid positions, if it contains numbers."""
    if valid.all() or values.dtype.kind not in _NUMBERS:
        return values
    return np.where(valid, values.astype(np.result_type(values.dtype, np.float32)), np.nan)


def place_text(axis: Axis, position: int) -> str:
    """Return a position on an axis as text: its label, its value with the unit, or its index."""
    if axis.labels is not None:
        return axis.labels[position]
    if axis.unit in (None, "index"):
        return str(position)
    return f"{axis.positions(position + 1)[position]:g} {axis.unit}"
