"""Data with axes as a DataArray of xarray: names, coordinates and units."""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any

import numpy as np

from udfdask.errors import missing_package
from udfdask.geometry.axes import Axis, Calibration
from udfdask.geometry.chunk_grid import BoolArray

PRESENT = "present"
"""Name of the coordinate that is True at scan positions with a frame."""

SIGNAL_DIMS = "signal_dims"
"""Name of the attribute with the names of the signal dimensions, a list as JSON.

A text, because not all formats that xarray writes have lists of texts (netCDF 3 has none).
"""


def labeled_array(
    array: Any, calibration: Calibration, sig_dims: int, present: BoolArray | None = None
) -> Any:
    """Return an array as a DataArray over the same memory or the same dask graph.

    Its attribute `signal_dims` names the last `sig_dims` dimensions. `present`
    is the mask of the scan positions that have a frame, shape nav; None for all.
    """
    try:
        import xarray as xr
    except ImportError as error:
        raise missing_package("xarray", purpose="to_xarray", extra="xarray") from error

    dims = [axis.name for axis in calibration.axes]
    coords: dict[Hashable, Any] = {}
    for axis, n in zip(calibration.axes, array.shape, strict=True):
        coords.update(coordinate(axis.name, axis, n))
    if present is not None:
        name = PRESENT
        while name in dims:
            name += "_"
        coords[name] = (dims[: present.ndim], present)
    attrs: dict[str, Any] = {"units": calibration.unit} if calibration.unit else {}
    if sig_dims:
        attrs[SIGNAL_DIMS] = json.dumps(dims[-sig_dims:], ensure_ascii=False)
    made = xr.DataArray(array, coords, dims=dims, attrs=attrs)
    return made.rename(own_name(made))


def own_name(array: Any) -> Hashable | None:
    """Return the name of a DataArray; None if it is only the name that dask gave to its data.

    xarray calls a DataArray of a dask array "zeros-4ef2a9...", and so would be a file of it.
    """
    # without chunks, the attribute `data` would read a file
    is_token = array.chunks is not None and array.name == array.data.name
    return None if is_token else array.name


def coordinate(dim: Hashable, axis: Axis, n: int) -> dict[Hashable, Any]:
    """Return the coordinate of a dimension; none if its axis is just pixel numbers."""
    numbered = axis.unit is None and axis.scale == 1 and axis.offset == 0
    if numbered and axis.values is None and axis.labels is None:
        return {}
    # labels as objects: zarr warns about text of fixed length, which its format 3 does not specify
    values = axis.positions(n) if axis.labels is None else np.array(axis.labels, dtype=object)
    return {dim: (dim, values, {"units": axis.unit} if axis.unit else {})}
