"""Align labeled shifts of frames with the data of a DataArray."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import xarray as xr

from udfdask.arrays.geometry.labeled_values import check_in_pixels
from udfdask.descan import Descan
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.results.labels.labels import Labels


def read_descan(descan: Any, array: xr.DataArray, labels: Labels) -> Any:
    """Return ``descan=`` as `udfdask.run_udf` takes it, in the order of the navigation axes.

    A DataArray is aligned by names and coordinates, and repeated along navigation dimensions that
    it does not have. All other forms are returned unchanged.
    """
    shifts = descan.shifts if isinstance(descan, Descan) else descan
    if isinstance(shifts, xr.Dataset):
        raise ArgumentTypeError(
            f"descan is a Dataset: pass one of its variables, {list(shifts.data_vars)}"
        )
    if not isinstance(shifts, xr.DataArray):
        return descan
    check_in_pixels("descan", shifts, "raw_shifts")
    aligned = _aligned(shifts, array, labels)
    return replace(descan, shifts=aligned) if isinstance(descan, Descan) else aligned


def _aligned(shifts: xr.DataArray, array: xr.DataArray, labels: Labels) -> Any:
    """Return the values of shifts, shape (*nav, sig dims)."""
    nav, n = labels.nav, len(labels.sig)
    others = [dim for dim in shifts.dims if dim not in nav]
    if not others and n == 1:
        shifts, others = shifts.expand_dims({"shift": 1}), ["shift"]
    if len(others) != 1 or shifts.sizes[others[0]] != n:
        raise ArgumentValueError(
            f"descan has the dimensions {dict(shifts.sizes)}, but needs navigation dimensions of "
            f"the data, which are {nav}, and one more of size {n}: the shift along {labels.sig}"
        )
    for dim in nav:
        if dim in shifts.dims:
            shifts = _reordered(shifts, array, dim)
    missing = {dim: array.sizes[dim] for dim in nav if dim not in shifts.dims}
    return shifts.expand_dims(missing).transpose(*nav, others[0]).data


def _reordered(shifts: xr.DataArray, array: xr.DataArray, dim: Hashable) -> xr.DataArray:
    """Reorder shifts along a dimension to match the coordinates of the data."""
    advice = "shifts.reindex_like(data) fills in NaN, which makes frames empty"
    if shifts.sizes[dim] != array.sizes[dim]:
        raise ArgumentValueError(
            f"descan has {shifts.sizes[dim]} positions along {dim!r}, the data have "
            f"{array.sizes[dim]}: {advice}"
        )
    if dim not in shifts.coords or dim not in array.coords:
        return shifts
    ours, wanted = shifts[dim].to_index(), array[dim].to_index()
    if ours.equals(wanted):
        return shifts
    unique = ours.is_unique and wanted.is_unique
    order = ours.get_indexer(wanted) if unique else None
    if order is None or (order < 0).any():
        raise ArgumentValueError(
            f"descan and the data have different coordinates along {dim!r}: {advice}; if they "
            "differ only by rounding, use shifts.assign_coords"
        )
    return shifts.isel({dim: order})
