"""Align labeled shifts of frames with the data of a DataArray."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import xarray as xr

from udfdask.arrays.geometry.labeled_values import check_in_pixels
from udfdask.descan import Descan
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.results.labels.align import aligned_along
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
            shifts = aligned_along(
                dim,
                shifts,
                array.coords,
                array.sizes[dim],
                what="descan",
                name="shifts",
                advice="shifts.reindex_like(data) fills in NaN, which makes frames empty",
            )
    missing = {dim: array.sizes[dim] for dim in nav if dim not in shifts.dims}
    return shifts.expand_dims(missing).transpose(*nav, others[0]).data
