"""Turn a DataArray into the dask array that UDFs run over, and its labels."""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import dask.array as da
import numpy as np
import xarray as xr

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import (
    Axis,
    Calibration,
    axis_of_values,
    with_different_names,
)
from udfdask.geometry.labels import DataLabels
from udfdask.io.labeled_array import SIGNAL_DIMS
from udfdask.results.layout import Labels, split_attributes, wants_attributes
from udfdask.xarray.align import align_roi


def name_dims(mapped: xr.DataArray, names: Any, labels: Labels) -> xr.DataArray:
    """Name the extra dimensions of a mapped array; those of the data get their coordinates back."""
    names = [names] if isinstance(names, str) else names
    extra = mapped.dims[len(labels.nav) :]
    if not isinstance(names, (list, tuple)) or not all(isinstance(n, Hashable) for n in names):
        raise ArgumentTypeError(f"output_dims must be a name or a list of names, not {names!r}")
    # the name of a signal dimension is free, and so is its coordinate, which is then kept
    taken = {*labels.nav, *labels.coords.coords} - {*labels.sig}
    if len(names) != len(extra) or len({*names}) < len(names) or taken & {*names}:
        raise ArgumentValueError(
            f"output_dims={names!r} must have {len(extra)} different names, other than those of "
            f"{sorted(taken, key=str)}: the function returns arrays of shape "
            f"{mapped.shape[len(labels.nav) :]}"
        )
    named = mapped.rename(dict(zip(extra, names, strict=True)))
    coords = {n: c for n, c in labels.coords.coords.items() if set(c.dims) <= {*named.dims}}
    return named.assign_coords(coords)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arranged:
    """The data of a DataArray as a run takes them."""

    array: da.Array
    """The data, shape (*nav, *sig)."""
    roi: Any
    """The region of interest in the order of `array`, as `udfdask.run_udf` takes it."""
    labels: Labels
    """Names, coordinates and attributes of the data."""
    calibration: Calibration
    """Axes of the data and unit of their values."""
    was_lazy: bool
    """Whether the DataArray has chunks. If not, results are computed immediately, as in xarray."""

    @property
    def sig_dims(self) -> int:
        """Number of signal axes."""
        return len(self.labels.sig)

    @property
    def axis_labels(self) -> DataLabels:
        """Names of the axes and labels along them, with which parameters are aligned."""
        return _axis_labels(self.labels, self.array.shape)


def arrange(
    array: xr.DataArray, sig_dims: Any, roi: Any, keep_attrs: bool | None = None
) -> Arranged:
    """Return a DataArray as a dask array with the signal dimensions last, and its labels.

    Without `sig_dims`, the attribute `signal_dims` names them, or they are the last two, unless one
    of these makes an image with a dimension before them.
    Axes are moved only if they are not in order, and data without chunks get chunks.
    """
    if sig_dims is None:
        sig_dims = _default_sig_dims(array)
    nav, sig = _split_dims(array.dims, sig_dims)
    ordered = array.transpose(*nav, *sig)
    was_lazy = ordered.chunks is not None
    chunked = ordered if was_lazy else _chunked(ordered, nav, sig)
    kept = wants_attributes(keep_attrs)
    general, quantity = split_attributes(array.attrs) if kept else ({}, {})
    labels = Labels(
        nav=nav,
        sig=sig,
        coords=array.coords.to_dataset(),  # 2D coordinates too: they are not transposed
        attrs=general,
        unit_attrs=quantity,
        shows_units=kept,
    )
    return Arranged(
        array=chunked.data,
        roi=align_roi(roi, ordered, _axis_labels(labels, ordered.shape)),
        labels=labels,
        calibration=_calibration(ordered, len(sig)),
        was_lazy=was_lazy,
    )


def _axis_labels(labels: Labels, shape: tuple[int, ...]) -> DataLabels:
    """Return the names and coordinates of the axes of data of this shape."""
    coords = labels.coords.coords
    return DataLabels(
        nav=labels.nav,
        sig=labels.sig,
        sizes=dict(zip(labels.dims, shape, strict=True)),
        indexes={dim: coords[dim].to_index() for dim in labels.dims if dim in coords},
    )


def _calibration(array: xr.DataArray, sig_dims: int) -> Calibration:
    """Return the axes that the coordinates of an array describe, and the unit of its values."""
    axes = [
        axis_of_values(str(dim), array[dim].values, array[dim].attrs.get("units"))
        if dim in array.coords
        else Axis(name=str(dim))
        for dim in array.dims
    ]
    unit = array.attrs.get("units")
    return Calibration(
        axes=with_different_names(axes, sig_dims), unit=unit if isinstance(unit, str) else None
    )


def _default_sig_dims(array: xr.DataArray) -> tuple[str, ...] | int:
    """Return the signal dimensions that the attribute `signal_dims` names; without it, 2.

    Raise if one of them is gone, or if names say that the last two are not frames.
    """
    named = array.attrs.get(SIGNAL_DIMS)
    if isinstance(named, str):
        try:
            named = json.loads(named)
        except ValueError:
            named = [named] if named else None  # one name, as a user would write it
    elif isinstance(named, np.ndarray):
        named = named.tolist()
    is_list = isinstance(named, (list, tuple)) and all(isinstance(name, str) for name in named)
    if not (named and is_list):
        _check_not_parted(array)
        return 2
    if set(named) - set(array.dims):
        # it was renamed, or the array is a sum along it: what is a frame now is only a guess
        raise ArgumentValueError(
            f"the attribute {SIGNAL_DIMS!r} of the DataArray names the signal dimensions "
            f"{tuple(named)}, but its dimensions are {array.dims}: pass sig_dims=, the names of "
            "the dimensions of a frame"
        )
    return tuple(named)


def _check_not_parted(array: xr.DataArray) -> None:
    """Raise if one of the last two dimensions belongs to a dimension before them.

    Of (y, x, time), a frame would have the axes x and time.
    """
    nav = {str(dim).lower(): dim for dim in array.dims[:-2]}
    for dim in array.dims[-2:]:
        parted = [nav[name] for name in _partners(str(dim).lower()) if name in nav]
        if parted:
            pair = tuple(one for one in array.dims if one in (parted[0], dim))
            rest = tuple(one for one in array.dims if one not in pair)
            raise ArgumentValueError(
                f"the DataArray has the dimensions {array.dims}: by default, a frame has the last "
                f"2, {array.dims[-2:]}, but {pair[0]!r} and {pair[1]!r} belong together. Pass "
                f"sig_dims={rest} or sig_dims={pair}, the names of the dimensions of a frame, or "
                "sig_dims=2 if it is as you want it"
            )


_PAIRS = ({"row", "col"}, {"row", "column"}, {"height", "width"})


def _partners(name: str) -> set[str]:
    """Return the names that the other axis of an image may have: kx for ky, column for row."""
    swap = str.maketrans("xy", "yx")
    found = {name[:-1] + name[-1:].translate(swap), name[:1].translate(swap) + name[1:]}
    return found.union(*(pair for pair in _PAIRS if name in pair)) - {name}


def _split_dims(
    dims: tuple[Hashable, ...], sig_dims: Any
) -> tuple[tuple[Hashable, ...], tuple[Hashable, ...]]:
    """Return the navigation and the signal dimensions, each in the order that UDFs see.

    `sig_dims` has the names of the signal dimensions, in the order of the axes of a frame, or their
    number if they are the last ones.
    """
    if len(set(dims)) < len(dims):
        raise ArgumentValueError(
            f"the DataArray has two dimensions of the same name, {dims}: rename one of them"
        )
    if isinstance(sig_dims, (int, np.integer)) and not isinstance(sig_dims, bool):
        if not 1 <= sig_dims <= len(dims):
            raise ArgumentValueError(
                f"sig_dims must be between 1 and {len(dims)}, the number of dimensions of the "
                f"DataArray, {dims}, not {sig_dims}"
            )
        n_nav = len(dims) - int(sig_dims)
        return dims[:n_nav], dims[n_nav:]
    if not isinstance(sig_dims, (str, list, tuple)):
        raise ArgumentTypeError(
            "sig_dims must be the names of the signal dimensions, such as ('ky', 'kx'), or the "
            f"number of the last ones, not {sig_dims!r}"
        )
    sig = (sig_dims,) if isinstance(sig_dims, str) else tuple(sig_dims)
    unknown = [name for name in sig if name not in dims]
    if unknown or not sig:
        what = f"has no dimension {unknown[0]!r}" if unknown else "needs a signal dimension"
        raise ArgumentValueError(
            f"the DataArray {what}: sig_dims={sig_dims!r}, but its dimensions are {dims}"
        )
    if len(set(sig)) < len(sig):
        raise ArgumentValueError(f"sig_dims={sig_dims!r} names a dimension twice")
    return tuple(name for name in dims if name not in sig), sig


def _chunked(
    array: xr.DataArray, nav: tuple[Hashable, ...], sig: tuple[Hashable, ...]
) -> xr.DataArray:
    """Cut an array into chunks of full frames; data that are still in a file stay there."""
    if not array.size or array.dtype.hasobject:  # dask finds no "auto" chunk size for these
        return array.chunk()
    chunks: dict[Hashable, Any] = {**dict.fromkeys(nav, "auto"), **dict.fromkeys(sig, -1)}
    # a random name: a name derived from the data would need to read all of them
    return array.chunk(chunks, token=uuid4().hex)
