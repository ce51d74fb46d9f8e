"""Align regions of interest and masks by the names and coordinates of the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.chunk_grid import BoolArray
from udfdask.geometry.labels import DataLabels, Dims, aligned, first_to_last, labels_of
from udfdask.geometry.roi import COMPUTE_FIRST


def align_roi(roi: Any, array: xr.DataArray, data: DataLabels) -> Any:
    """Return a region of interest in the order of the data.

    A DataArray is aligned by names and coordinates, and repeated along navigation dimensions that
    it does not have. A dictionary selects as `DataArray.sel` does. All other forms are returned
    unchanged.
    """
    if isinstance(roi, xr.Dataset):
        raise ArgumentTypeError(
            f"the roi is a Dataset: pass one of its variables, {list(roi.data_vars)}"
        )
    if isinstance(roi, Mapping):
        return _select(roi, array, data.nav)
    if not isinstance(roi, xr.DataArray):
        return roi
    if roi.chunks is not None:
        raise ArgumentTypeError(f"the roi is lazy: {COMPUTE_FIRST}")
    foreign = [dim for dim in roi.dims if dim not in data.nav]
    if foreign:
        raise ArgumentValueError(
            f"the roi has a dimension {foreign[0]!r}, but the navigation dimensions of the data "
            f"are {data.nav}"
        )
    advice = "roi.reindex_like(data, fill_value=False) is False wherever the roi is missing"
    if not roi.dims:
        return np.broadcast_to(roi.data, [data.sizes[dim] for dim in data.nav])
    return aligned(roi.data, labels_of(roi), data, "nav", what="the roi", name="roi", advice=advice)


def align_mask(mask: Any, data: DataLabels) -> Any:
    """Return a mask of frames that is a DataArray as an array in the order of the signal axes.

    Other values are returned unchanged.
    """
    if isinstance(mask, xr.Dataset):
        raise ArgumentTypeError(
            f"the mask is a Dataset: pass one of its variables, {list(mask.data_vars)}"
        )
    if not isinstance(mask, xr.DataArray):
        return mask
    if mask.chunks is not None:
        raise ArgumentTypeError("the mask is lazy: pass mask.compute()")
    if set(mask.dims) != set(data.sig):
        raise ArgumentValueError(
            f"the mask has the dimensions {mask.dims}, but the signal dimensions of the data are "
            f"{data.sig}: a DataArray is one mask, with these dimensions in any order"
        )
    advice = "mask.reindex_like(data, fill_value=False) is False wherever the mask is missing"
    return aligned(
        mask.data, labels_of(mask), data, "sig", what="the mask", name="mask", advice=advice
    )


def _select(labels: Mapping[Any, Any], array: xr.DataArray, nav: Dims) -> BoolArray:
    """Return the mask of the positions that xarray selects by labels along navigation dimensions.

    Along a dimension without coordinates, labels are positions.
    """
    for dim in labels:
        if dim not in nav:
            kind = "a signal dimension" if dim in array.dims else "no dimension"
            raise ArgumentValueError(
                f"the roi names {dim!r}, which is {kind} of the data: their navigation dimensions "
                f"are {nav}"
            )
    others = [dim for dim in array.dims if dim not in nav]
    coords = array.coords.to_dataset().drop_dims(others, errors="ignore").coords
    mask = xr.DataArray(np.zeros([array.sizes[dim] for dim in nav], bool), coords, nav)
    try:
        mask.loc[dict(labels)] = True
    except Exception as error:  # xarray and pandas raise errors of many kinds
        known = [
            f"along {d!r} from {first_to_last(array.indexes[d])}" for d in labels if d in coords
        ]
        there = f"the coordinates go {' and '.join(known)}" if known else "there are no coordinates"
        raise ArgumentValueError(
            f"the roi {dict(labels)} cannot be found: {there}. A label is one of them, a slice "
            "selects all labels between its ends; without coordinates, integers are positions"
        ) from error
    return mask.values
