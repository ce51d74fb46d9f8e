"""Describe results before they have values, to decide whether and how to draw them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from udfdask.geometry.axes import Axis, Calibration
from udfdask.geometry.axis_labels import check_axes

NUMBERS = "biufc"


class Described(Protocol):
    """The description of the results of one UDF, which is known before they are computed."""

    @property
    def udf_name(self) -> str:
        """Name of the UDF's class."""

    @property
    def name(self) -> str | None:
        """Name that the user gave to the UDF; None if there is none."""

    @property
    def buffers(self) -> Mapping[str, Any]:
        """Declarations of the results by name."""

    @property
    def extra_axes(self) -> Mapping[str, tuple[Axis, ...]]:
        """Extra dimensions of each result."""

    @property
    def calibration(self) -> Calibration:
        """Axes of the data and unit of their values."""

    @property
    def units(self) -> Mapping[str, str | None]:
        """Unit of each result; None if it is not known."""

    @property
    def default_plots(self) -> Sequence[str]:
        """Names of the results that are drawn if none is named; empty for all."""

    @property
    def nav_shape(self) -> tuple[int, ...]:
        """Shape of the scan."""

    @property
    def sig_shape(self) -> tuple[int, ...]:
        """Shape of a frame."""


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
        if self.dtype.kind not in NUMBERS:
            return f"it contains {self.dtype} values, not numbers"
        size = math.prod(self.shape)
        return "" if size > 1 else "it is one number" if size else "it is empty"


def label_results(
    described: Described, data_axes: Sequence[Axis] | None = None
) -> dict[str, Labels]:
    """Return the labels of all results of a UDF by name; `data_axes` describes its data."""
    nav, sig = tuple(described.nav_shape), tuple(described.sig_shape)
    axes = described.calibration.axes
    if data_axes is not None:
        axes = check_axes(data_axes, (*nav, *sig), len(sig))
    leading = {"nav": (nav, axes[: len(nav)]), "sig": (sig, axes[len(nav) :])}
    found = {}
    for name, spec in described.buffers.items():
        shape, own = leading.get(spec.kind, ((), ()))
        # positions in an extra dimension are indices, not pixels
        extra = (
            a if a.unit or a.labels else replace(a, unit="index")
            for a in described.extra_axes[name]
        )
        found[name] = Labels(
            title=name,
            kind=str(spec.kind),
            shape=(*shape, *spec.extra_shape),
            dtype=spec.dtype,
            axes=(*own, *extra),
            n_leading=len(shape),
            unit=described.units[name],
        )
    return found


def missing_as_nan(
    values: np.ndarray[Any, Any], valid: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """Return an array with NaN at invalid positions, if it contains numbers."""
    if valid.all() or values.dtype.kind not in NUMBERS:
        return values
    return np.where(valid, values.astype(np.result_type(values.dtype, np.float32)), np.nan)


def place_text(axis: Axis, position: int) -> str:
    """Return a position on an axis as text: its label, its value with the unit, or its index."""
    if axis.labels is not None:
        return axis.labels[position]
    if axis.unit in (None, "index"):
        return str(position)
    return f"{axis.positions(position + 1)[position]:g} {axis.unit}"
