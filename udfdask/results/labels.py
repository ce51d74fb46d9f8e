"""The names of the dimensions of a data set, their coordinates and attributes. Needs xarray."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from udfdask.errors import ArgumentTypeError, missing_package
from udfdask.geometry.axes import Axis
from udfdask.io.labeled_array import SIGNAL_DIMS, coordinate

try:
    import xarray as xr
except ImportError as error:
    raise missing_package("xarray", purpose="a labeled result", extra="xarray") from error

Attributes = dict[Hashable, Any]

QUANTITY = frozenset({"units", "long_name", "standard_name"})
"""Attributes that describe the quantity of the values: a result in the same unit keeps them."""

VALUES = frozenset(
    "actual_range flag_masks flag_meanings flag_values valid_max valid_min valid_range".split()
) | {SIGNAL_DIMS}
"""Attributes that describe the data alone, most of CF: results never have them."""


def split_attributes(attrs: Mapping[Hashable, Any]) -> tuple[Attributes, Attributes]:
    """Return the attributes of every result, and those of results in the unit of the data only."""
    general = {k: v for k, v in attrs.items() if k not in QUANTITY | VALUES}
    return general, {k: v for k, v in attrs.items() if k in QUANTITY}


def wants_attributes(keep_attrs: Any) -> bool:
    """Return whether to keep attributes; None means the option of xarray."""
    if keep_attrs is None:
        keep_attrs = xr.get_options()["keep_attrs"]
        return True if keep_attrs == "default" else bool(keep_attrs)
    if not isinstance(keep_attrs, bool):
        raise ArgumentTypeError(
            f"keep_attrs must be True, False or None (xarray's option), not {keep_attrs!r}"
        )
    return keep_attrs


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Names, coordinates and attributes of a data set."""

    nav: tuple[Hashable, ...]
    """Name of each navigation axis."""
    sig: tuple[Hashable, ...]
    """Name of each signal axis."""
    coords: xr.Dataset = field(default_factory=xr.Dataset)
    """Coordinates of the data with their indexes, and no variables."""
    attrs: Mapping[Hashable, Any] = field(default_factory=dict)
    """Attributes of every result."""
    unit_attrs: Mapping[Hashable, Any] = field(default_factory=dict)
    """Attributes of results in the unit of the data."""
    shows_units: bool = True
    """Whether results whose unit is known have the attribute `units`."""

    @property
    def dims(self) -> tuple[Hashable, ...]:
        """Name of each axis of the data."""
        return (*self.nav, *self.sig)


def labels_of_axes(axes: Sequence[Axis], shape: Sequence[int], n_nav: int) -> Labels:
    """Return the labels of data with these axes, of which the first `n_nav` are the scan."""
    names = tuple(axis.name for axis in axes)
    coords: dict[Hashable, Any] = {}
    for axis, n in zip(axes, shape, strict=True):
        coords.update(coordinate(axis.name, axis, n))
    return Labels(nav=names[:n_nav], sig=names[n_nav:], coords=xr.Dataset(coords=coords))
