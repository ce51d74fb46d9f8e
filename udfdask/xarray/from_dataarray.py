"""Turn a DataArray into the dask array that UDFs run over, and its labels."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import dask.array as da
import numpy as np
import xarray as xr
from dask.utils import format_bytes

from udfdask import config
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import (
    Axis,
    Calibration,
    axis_of_values,
    with_different_names,
)
from udfdask.geometry.axis_labels import DataLabels
from udfdask.io.labeled_array import SIGNAL_DIMS
from udfdask.results.labels import Labels, split_attributes, wants_attributes
from udfdask.results.layout import Layout
from udfdask.tracebacks import warn_user
from udfdask.xarray.align import align_roi


def name_output_dims(
    layout: Layout, key: str, shape: tuple[int, ...], names: Any, labels: Labels
) -> Layout:
    """Name the extra dimensions, of this shape, of a nav result; return the new layout.

    Dimensions of the data among the names get their coordinates back.
    """
    place = layout.places[key]
    names = [names] if isinstance(names, str) else names
    _check_output_dims(names, shape, labels, layout)
    dims = (*labels.nav, *names)
    dropped = [dim for dim in labels.dims if dim not in dims]
    coords = labels.coords.drop_dims(dropped, errors="ignore")
    return replace(layout, places={key: replace(place, dims=dims)}, coords=coords)


def _check_output_dims(names: Any, shape: tuple[int, ...], labels: Labels, layout: Layout) -> None:
    """Raise unless each axis has a name that is free or is a signal dimension of this size."""
    if not isinstance(names, Sequence):
        raise ArgumentTypeError(f"output_dims must be a name or a list of names, not {names!r}")
    if len(names) != len(shape):
        raise ArgumentValueError(
            f"output_dims={names!r} names {len(names)} axes, but the function returns arrays of "
            f"shape {shape}"
        )
    for name, n in zip(names, shape, strict=True):
        if not isinstance(name, Hashable):
            raise ArgumentTypeError(f"output_dims={names!r}: {name!r} cannot be a name")
        size = labels.coords.sizes.get(name, n) if name in labels.sig else n
        if size != n:
            raise ArgumentValueError(
                f"output_dims={names!r}: the data have {size} positions along {name!r}, but the "
                f"function returns {n}: use another name"
            )
    taken = {*labels.nav, *(c for c in layout.coords.coords if c not in labels.sig)}
    if len(set(names)) < len(names) or taken.intersection(names):
        raise ArgumentValueError(
            f"output_dims={names!r}: names must differ from each other and from the dimensions and "
            f"coordinates {sorted(taken, key=str)}"
        )


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
        sig_dims = default_sig_dims(array)
        _check_not_lost(array, sig_dims)
        _check_not_parted(array, sig_dims)
    nav, sig = split_dims(array.dims, sig_dims)
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


def default_sig_dims(array: xr.DataArray) -> tuple[str, ...] | int:
    """Return the signal dimensions that the attribute `signal_dims` names; without it, 2."""
    named = array.attrs.get(SIGNAL_DIMS)
    if isinstance(named, str):
        try:
            named = json.loads(named)
        except ValueError:
            named = [named] if named else None  # one name, as a user would write it
    elif isinstance(named, np.ndarray):
        named = named.tolist()
    is_list = isinstance(named, (list, tuple)) and all(isinstance(name, str) for name in named)
    return tuple(named) if named and is_list else 2


def _check_not_lost(array: xr.DataArray, sig_dims: tuple[str, ...] | int) -> None:
    """Raise if a dimension that the attribute `signal_dims` names is gone.

    It was renamed, or the array is a sum along it: what is a frame now is only a guess.
    """
    lost = [] if isinstance(sig_dims, int) else [dim for dim in sig_dims if dim not in array.dims]
    if lost:
        raise ArgumentValueError(
            f"the attribute {SIGNAL_DIMS!r} of the DataArray names the signal dimensions "
            f"{sig_dims}, but its dimensions are {array.dims}: pass sig_dims=, the names of the "
            "dimensions of a frame"
        )


def _check_not_parted(array: xr.DataArray, sig_dims: tuple[str, ...] | int) -> None:
    """Raise if the last two dimensions are frames by default, but their names say otherwise.

    Of (y, x, time), a frame would have the axes x and time.
    """
    if not isinstance(sig_dims, int):
        return
    nav = {str(dim).lower(): dim for dim in array.dims[:-sig_dims]}
    for dim in array.dims[-sig_dims:]:
        parted = [nav[name] for name in _partners(str(dim).lower()) if name in nav]
        if parted:
            pair = tuple(one for one in array.dims if one in (parted[0], dim))
            rest = tuple(one for one in array.dims if one not in pair)
            raise ArgumentValueError(
                f"the DataArray has the dimensions {array.dims}: by default, a frame has the last "
                f"{sig_dims}, {array.dims[-sig_dims:]}, but {pair[0]!r} and {pair[1]!r} belong "
                f"together. Pass sig_dims={rest} or sig_dims={pair}, the names of the dimensions "
                f"of a frame, or sig_dims={sig_dims} if it is as you want it"
            )


def _partners(name: str) -> set[str]:
    """Return the names that the other axis of an image may have: kx for ky, column for row.

    Examples
    --------
    >>> from udfdask.xarray.from_dataarray import _partners
    >>> sorted(_partners("ky")), sorted(_partners("row")), sorted(_partners("time"))
    (['kx'], ['col', 'column'], [])
    """
    swap = str.maketrans("xy", "yx")
    found = {name[:-1] + name[-1:].translate(swap), name[:1].translate(swap) + name[1:]}
    for one, other in (("row", "col"), ("row", "column"), ("height", "width")):
        found |= {other} if name == one else {one} if name == other else set()
    return found - {name}


def choose_variable(dataset: xr.Dataset, sig_dims: Any) -> xr.DataArray:
    """Return the variable of a Dataset that fits the signal dimensions; raise if not exactly one.

    It has all of them, or more dimensions than their number, and at least one that is left for the
    scan. Only if there is none, a variable that is one frame fits.
    """
    variables = dict(dataset.data_vars.items())
    if not variables:
        raise ArgumentValueError("the Dataset has no variables, so there are no data to process")
    if sig_dims is None:
        sigs = {name: default_sig_dims(v) for name, v in variables.items()}
    else:
        sigs = dict.fromkeys(variables, sig_dims)
    spare = {name: _n_nav(v, sigs[name]) for name, v in variables.items()}
    fitting = [name for name, n_nav in spare.items() if n_nav >= 0 and variables[name].ndim]
    chosen = [name for name in fitting if spare[name] > 0] or fitting
    if len(chosen) == 1:
        return variables[chosen[0]]
    shapes = ", ".join(f"{name!r} {v.dims}" for name, v in variables.items())
    found = f"{len(chosen)} variables of the Dataset fit" if chosen else "no variable fits"
    remedy = (
        f"choose one, dataset.udf[{chosen[0]!r}]"
        if chosen
        else "correct sig_dims, or choose one, dataset.udf['name']"
    )
    asked = "the default of sig_dims" if sig_dims is None else f"sig_dims={sig_dims!r}"
    raise ArgumentValueError(f"{found} {asked}: {remedy}. There are {shapes}")


def _n_nav(array: xr.DataArray, sig_dims: Any) -> int:
    """Return the number of navigation dimensions; -1 if a signal dimension is missing."""
    if isinstance(sig_dims, (int, np.integer)) and not isinstance(sig_dims, bool):
        return array.ndim - int(sig_dims)
    sig = _names(sig_dims)
    return array.ndim - len(sig) if set(sig) <= {*array.dims} else -1


def split_dims(
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
    if isinstance(sig_dims, bool):
        raise ArgumentTypeError(f"sig_dims must be names or a number of dims, not {sig_dims!r}")
    if isinstance(sig_dims, (int, np.integer)):
        if not 1 <= sig_dims <= len(dims):
            raise ArgumentValueError(
                f"sig_dims must be between 1 and {len(dims)}, the number of dimensions of the "
                f"DataArray, {dims}, not {sig_dims}"
            )
        n_nav = len(dims) - int(sig_dims)
        return dims[:n_nav], dims[n_nav:]
    sig = _names(sig_dims)
    unknown = [name for name in sig if name not in dims]
    if unknown or not sig:
        what = f"has no dimension {unknown[0]!r}" if unknown else "needs a signal dimension"
        raise ArgumentValueError(
            f"the DataArray {what}: sig_dims={sig_dims!r}, but its dimensions are {dims}"
        )
    if len(set(sig)) < len(sig):
        raise ArgumentValueError(f"sig_dims={sig_dims!r} names a dimension twice")
    return tuple(name for name in dims if name not in sig), sig


def _names(sig_dims: Any) -> tuple[Hashable, ...]:
    """Return the names of signal dimensions as a tuple."""
    if isinstance(sig_dims, str):
        return (sig_dims,)
    if isinstance(sig_dims, (list, tuple)):
        for name in sig_dims:
            if not isinstance(name, Hashable):
                raise ArgumentTypeError(f"sig_dims={sig_dims!r}: {name!r} cannot be a name")
        return tuple(sig_dims)
    raise ArgumentTypeError(
        f"sig_dims must be the names of the signal dimensions, such as ('ky', 'kx'), or the number "
        f"of the last ones, not {type(sig_dims).__name__}"
    )


def _chunked(
    array: xr.DataArray, nav: tuple[Hashable, ...], sig: tuple[Hashable, ...]
) -> xr.DataArray:
    """Cut an array into chunks of full frames; data that are still in a file stay there."""
    if not array.size or array.dtype.hasobject:  # dask finds no "auto" chunk size for these
        return array.chunk()
    chunks: dict[Hashable, Any] = {**dict.fromkeys(nav, "auto"), **dict.fromkeys(sig, -1)}
    # a random name: a name derived from the data would need to read all of them
    return array.chunk(chunks, token=uuid4().hex)


def warn_if_huge(arranged: Arranged) -> None:
    """Warn if data without chunks, which are processed immediately, are large."""
    array, memory = arranged.array, config.worker_memory()
    nbytes = array.size * array.dtype.itemsize  # expression arrays have no nbytes yet
    if arranged.was_lazy or memory is None or nbytes <= memory:
        return
    warn_user(
        f"the DataArray has no chunks: all of its {format_bytes(int(nbytes))} are processed at "
        "once, and results are computed, not lazy. Call its chunk() first, or open the file with "
        "chunks={}, to get lazy results"
    )
