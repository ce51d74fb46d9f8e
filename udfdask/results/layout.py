"""The layout of a Dataset of results: names, dimensions, coordinates and attributes."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import xarray as xr

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Axis, axis_of_values
from udfdask.geometry.chunk_grid import BoolArray
from udfdask.io.labeled_array import coordinate
from udfdask.results.labels import Labels
from udfdask.udf.buffers import BufferSpec

if TYPE_CHECKING:
    from udfdask.results.named_results import ResultInfo

VISITED = "visited"
"""Variable of a UDF without results: the mask of the frames that have been processed."""

Dims = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The variable for one result."""

    name: Hashable
    """Name of the variable."""
    mask_name: Hashable
    """Name of the variable with its valid mask."""
    dims: Dims
    """Name of each axis."""
    attrs: Mapping[Hashable, Any]
    """Attributes of the variable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The Dataset for all results of a UDF."""

    places: Mapping[str, Place]
    """Variables by the names of the results."""
    nav: Dims
    """Name of each navigation axis."""
    coords: xr.Dataset
    """Coordinates with their indexes, and no variables."""
    attrs: Mapping[Hashable, Any]
    """Attributes of the Dataset."""

    def with_attributes(self, attrs: Mapping[Any, Any]) -> Layout:
        """Return a layout in which each result has some more attributes."""
        places = {
            key: replace(place, attrs={**place.attrs, **attrs})
            for key, place in self.places.items()
        }
        return replace(self, places=places)

    def fill(
        self, arrays: Mapping[str, Any], masks: Mapping[str, Any] | None, visited: Any
    ) -> xr.Dataset:
        """Return the Dataset of results, with valid masks if they are given."""
        variables: dict[Hashable, Any] = {}
        for key, place in self.places.items():
            variables[place.name] = (place.dims, arrays[key], dict(place.attrs))
            if masks is not None:
                variables[place.mask_name] = (place.dims, masks[key])
        if not self.places:
            variables[VISITED] = (self.nav, visited)
        return self.coords.assign(variables).assign_attrs(self.attrs)

    def add_validity(
        self, dataset: xr.Dataset, masks: Mapping[str, Any], roi: BoolArray | None
    ) -> xr.Dataset:
        """Add valid masks of some results, and the region of interest, to a Dataset."""
        places = {name: self.places[name] for name in masks}
        masked = dataset.assign({p.mask_name: (p.dims, masks[name]) for name, p in places.items()})
        if roi is None:
            return masked
        name = free_name("roi", {*masked.variables, *masked.dims})
        return masked.assign_coords({name: (self.nav, roi)})


def make_layout(
    results: ResultInfo, labels: Labels, rename: Mapping[str, Hashable] | None = None
) -> Layout:
    """Return the layout for the results of a UDF; `rename` has new names of variables."""
    buffers, axes = results.buffers, results.extra_axes
    names: dict[str, Hashable] = {key: (rename or {}).get(key, key) for key in buffers}
    kind_dims = {"nav": labels.nav, "sig": labels.sig, "single": ()}
    own = {key: kind_dims[spec.kind] for key, spec in buffers.items()}
    used = set().union(*own.values()) if buffers else set(labels.nav)
    coords = labels.coords.drop_dims(set(labels.dims) - used, errors="ignore")
    taken = {*labels.dims, *coords.coords}
    _check_names(names.values() if buffers else [VISITED], taken)
    # whole frames, as PickUDF returns them, keep the names of the signal dimensions
    frame = () if used.intersection(labels.sig) else labels.sig
    extra = _extra_dims(buffers, axes, {*taken, *names.values()}, frame)
    masks = _mask_names(names, taken.union(*extra.values()))
    places = {
        key: Place(
            name=names[key],
            mask_name=masks[key],
            dims=(*own[key], *extra[key]),
            attrs={
                **labels.attrs,
                **_units(results.units.get(key) if labels.shows_units else None),
                **(labels.unit_attrs if key in results.in_units else {}),
            },
        )
        for key in buffers
    }
    return Layout(
        places=places,
        nav=labels.nav,
        coords=coords.assign_coords(_extra_coords(buffers, axes, extra, labels.coords)),
        attrs=labels.attrs,
    )


def _units(unit: str | None) -> dict[Hashable, Any]:
    """Return the attributes that tell the unit of a variable."""
    return {} if unit is None else {"units": unit}


def check_rename(rename: Any, buffers: Iterable[str]) -> None:
    """Raise unless `rename` is a mapping from names of results to names, or None."""
    if rename is None:
        return
    if not isinstance(rename, Mapping):
        raise ArgumentTypeError(
            f"rename must be a dictionary such as {{'intensity': 'total'}}, not {rename!r}"
        )
    names = sorted(set(buffers))
    for key in rename:
        if key not in names:
            raise ArgumentValueError(f"rename={rename!r}: there is no result {key!r}, only {names}")


def free_name(name: str, taken: Collection[Hashable]) -> str:
    """Return a name, with underscores appended while it is taken."""
    while name in taken:
        name += "_"
    return name


def _mask_names(names: Mapping[str, Hashable], taken: Collection[Hashable]) -> dict[str, Hashable]:
    """Return a free name for the valid mask of each result."""
    masks: dict[str, Hashable] = {}
    for key, name in names.items():
        masks[key] = free_name(f"{name}_valid", {*taken, *names.values(), *masks.values()})
    return masks


def _check_names(names: Iterable[Hashable], taken: Collection[Hashable]) -> None:
    """Raise if names of variables repeat, or equal dimensions or coordinates."""
    seen: set[Hashable] = set()
    for name in names:
        if name in taken:
            raise ArgumentValueError(
                f"the result {name!r} has the same name as a dimension or coordinate of the data: "
                f"give it another name, rename={{{name!r}: '{name}_result'}}"
            )
        if name in seen:
            raise ArgumentValueError(f"two results have the name {name!r}: correct rename=")
        seen.add(name)


def _extra_dims(
    buffers: Mapping[str, BufferSpec],
    axes: Mapping[str, tuple[Axis, ...]],
    taken: Collection[Hashable],
    frame: Dims,
) -> dict[str, Dims]:
    """Return the names of the extra dimensions of each result.

    Results with the same axis share a dimension. If the name of an axis is taken or means another
    axis, the name of the result is put in front of it. The last axes may have all names of `frame`.
    """
    meaning: dict[str, tuple[Axis, int]] = {}
    dims: dict[str, Dims] = {}
    for key, spec in buffers.items():
        own: list[str] = []
        names = [axis.name for axis in axes[key]]
        is_frame = bool(frame) and tuple(names[-len(frame) :]) == frame
        others = set(taken).difference(frame if is_frame else ())
        for axis, n in zip(axes[key], spec.extra_shape, strict=True):
            name = axis.name
            while name in others or meaning.get(name, (axis, n)) != (axis, n) or name in own:
                name = f"{key}_{axis.name}" if name == axis.name else f"{name}_"
            meaning[name] = (axis, n)
            own.append(name)
        dims[key] = tuple(own)
    return dims


def _extra_coords(
    buffers: Mapping[str, BufferSpec],
    axes: Mapping[str, tuple[Axis, ...]],
    dims: Mapping[str, Dims],
    data: xr.Dataset,
) -> dict[Hashable, Any]:
    """Return coordinates for the extra dimensions whose axis has values or labels.

    Dimensions of the data have theirs: those that are made of an axis differ by rounding.
    """
    coords: dict[Hashable, Any] = {}
    for key, spec in buffers.items():
        for dim, axis, n in zip(dims[key], axes[key], spec.extra_shape, strict=True):
            own = data.coords.get(dim)
            if own is not None and own.size == n and _axis_of(own, axis.name) == axis:
                coords[dim] = own.variable
            else:
                coords.update(coordinate(dim, axis, n))
    return coords


def _axis_of(coord: xr.DataArray, name: str) -> Axis | None:
    """Return the axis that a run makes of a coordinate; None for one with several levels."""
    if coord.to_index().nlevels > 1:
        return None
    return axis_of_values(name, coord.values, coord.attrs.get("units"))
