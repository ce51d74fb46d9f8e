"""What the dimensions of a data set are called, and what is known along them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import xarray as xr

from udfdask.arrays.geometry.axes import default_axis_names


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
    """Attributes that hold for whatever is made of the data."""
    unit_attrs: Mapping[Hashable, Any] = field(default_factory=dict)
    """Attributes that hold for results in the unit of the data."""

    @property
    def dims(self) -> tuple[Hashable, ...]:
        """Name of each axis of the data."""
        return (*self.nav, *self.sig)


def default_labels(n_nav: int, n_sig: int) -> Labels:
    """Return the labels of data that have none, from their numbers of axes."""
    names = default_axis_names(n_nav + n_sig, n_sig)
    return Labels(nav=names[:n_nav], sig=names[n_nav:])
