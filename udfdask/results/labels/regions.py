"""A region of interest with labels, brought to the positions of the data."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import xarray as xr

from udfdask.errors import ArgumentTypeError, ArgumentValueError

ADVICE = "roi.reindex_like(data, fill_value=False) leaves out what the roi does not mention"


def align_roi(roi: Any, array: xr.DataArray, nav: tuple[Hashable, ...]) -> Any:
    """Return a region of interest in the order of the data.

    That of a DataArray is found by names and coordinates, and repeated along navigation dimensions
    that it does not have. Anything else is handed on as it is.
    """
    if isinstance(roi, xr.Dataset):
        raise ArgumentTypeError(
            f"the roi is a Dataset: pass one of its variables, {list(roi.data_vars)}"
        )
    if not isinstance(roi, xr.DataArray):
        return roi
    if roi.chunks is not None:
        raise ArgumentTypeError("the roi is lazy: pass roi.compute()")
    foreign = [dim for dim in roi.dims if dim not in nav]
    if foreign:
        raise ArgumentValueError(
            f"the roi has a dimension {foreign[0]!r}, but the navigation dimensions of the data "
            f"are {nav}"
        )
    for dim in roi.dims:
        roi = _aligned(roi, array, dim)
    missing = {dim: array.sizes[dim] for dim in nav if dim not in roi.dims}
    return roi.expand_dims(missing).transpose(*nav).data


def _aligned(roi: xr.DataArray, array: xr.DataArray, dim: Hashable) -> xr.DataArray:
    """Return a region whose positions along a dimension are in the order of the data's."""
    if roi.sizes[dim] != array.sizes[dim]:
        raise ArgumentValueError(
            f"the roi has {roi.sizes[dim]} positions along {dim!r}, the data have "
            f"{array.sizes[dim]}: {ADVICE}"
        )
    if dim not in roi.coords or dim not in array.coords:
        return roi
    given, wanted = roi[dim].to_index(), array[dim].to_index()
    if given.equals(wanted):
        return roi
    order = given.get_indexer(wanted) if given.is_unique and wanted.is_unique else None
    if order is None or (order < 0).any():
        raise ArgumentValueError(
            f"the roi and the data have different coordinates along {dim!r}: "
            f"{_ends(given)} and {_ends(wanted)}. {ADVICE}; for those that differ by rounding "
            "use roi.assign_coords"
        )
    return roi.isel({dim: order})


def _ends(index: Any) -> str:
    """Return the first and the last label of an index, in words."""
    plain = index.tolist()  # numbers of Python, which say no more than they have to
    return f"{plain[0]!r} to {plain[-1]!r}" if plain else "none"
