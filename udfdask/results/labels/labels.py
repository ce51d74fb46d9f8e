"""The names of the dimensions of a data set, their coordinates and attributes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import xarray as xr

from udfdask.arrays.geometry.axes import default_axis_names
from udfdask.errors import ArgumentTypeError

Attributes = dict[Hashable, Any]

QUANTITY = frozenset({"units", "long_name", "standard_name"})
"""Attributes that describe the quantity of the values: a result in the same unit keeps them."""

VALUES = frozenset(
    "actual_range flag_masks flag_meanings flag_values valid_max valid_min valid_range".split()
)
"""Attributes of the CF conventions that describe the data alone: results never have them."""


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

    @property
    def dims(self) -> tuple[Hashable, ...]:
        """Name of each axis of the data."""
        return (*self.nav, *self.sig)


def default_labels(n_nav: int, n_sig: int) -> Labels:
    """Return default labels for data with these numbers of axes."""
    names = default_axis_names(n_nav + n_sig, n_sig)
    return Labels(nav=names[:n_nav], sig=names[n_nav:])
