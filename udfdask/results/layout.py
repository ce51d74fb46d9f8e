"""Datasets of results: names, dimensions, coordinates and attributes of their variables."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from udfdask.errors import ArgumentValueError, missing_package
from udfdask.geometry.axes import Axis, axis_of_values
from udfdask.io.opened_file import SIGNAL_DIMS, coordinate

try:
    import xarray as xr
except ImportError as error:
    raise missing_package("xarray", purpose="a labeled result", extra="xarray") from error

if TYPE_CHECKING:
    from udfdask.results.named_results import ResultInfo

VISITED = "visited"
"""Variable of a UDF without results: the mask of the frames that have been processed."""

QUANTITY = frozenset({"units", "long_name", "standard_name"})
"""Attributes that describe the quantity of the values: a result in the same unit keeps them."""

VALUES = frozenset(
    "actual_range flag_masks flag_meanings flag_values valid_max valid_min valid_range".split()
) | {SIGNAL_DIMS}
"""Attributes that describe the data alone, most of CF: results never have them."""


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
    shows_units: bool = True
    """Whether results whose unit is known have the attribute `units`."""

    def of_positions(self, mask: Any) -> xr.DataArray:
        """Return an array of shape nav with the labels of the scan."""
        coords = self.coords.drop_dims(self.sig, errors="ignore").coords
        return xr.DataArray(mask, dims=self.nav, coords=coords)


Dims = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The variable for one result, and the name of the variable with its valid mask."""

    name: Hashable
    mask_name: Hashable
    dims: Dims
    attrs: Mapping[Hashable, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The Dataset for all results of a UDF: variables by the names of the results, labels."""

    places: Mapping[str, Place]
    nav: Dims
    coords: xr.Dataset
    attrs: Mapping[Hashable, Any]


def make_layout(
    results: ResultInfo,
    labels: Labels,
    rename: Mapping[str, Hashable] | None = None,
    more: Mapping[Any, Any] | None = None,
) -> Layout:
    """Return the layout for the results of a UDF.

    `rename` has new names of variables, and `more` has more attributes of each.
    """
    buffers = results.buffers
    names: dict[str, Hashable] = {key: (rename or {}).get(key, key) for key in buffers}
    kind_dims = {"nav": labels.nav, "sig": labels.sig, "single": ()}
    own = {key: kind_dims[spec.kind] for key, spec in buffers.items()}
    used = set().union(*own.values()) if buffers else set(labels.nav)
    dims = {*labels.nav, *labels.sig}
    coords = labels.coords.drop_dims(dims - used, errors="ignore")
    taken: set[Hashable] = {*dims, *coords.coords}
    seen = set(taken)
    for name in names.values() if buffers else [VISITED]:
        if name in seen:
            raise ArgumentValueError(
                f"the result {name!r} is a dimension or coordinate of the data, or the name "
                f"of another result: give it another name, such as '{name}_found', with rename="
            )
        seen.add(name)
    # whole frames, as PickUDF returns them, keep the names of the signal dimensions
    frame = () if used.intersection(labels.sig) else labels.sig
    extra, own_coords = _extra_dims(results, {*taken, *names.values()}, frame, labels.coords)
    taken = taken.union(names.values(), *extra.values())
    places = {}
    for key, name in names.items():
        unit = results.units.get(key) if labels.shows_units else None
        units: dict[Hashable, Any] = {} if unit is None else {"units": unit}
        own_attrs = labels.unit_attrs if key in results.in_units else {}
        mask_name = free_name(f"{name}_valid", taken)
        taken.add(mask_name)
        places[key] = Place(
            name=name,
            mask_name=mask_name,
            dims=(*own[key], *extra[key]),
            attrs={**labels.attrs, **units, **own_attrs, **(more or {})},
        )
    return Layout(
        places=places,
        nav=labels.nav,
        coords=coords.assign_coords(own_coords),
        attrs=labels.attrs,
    )


def check_rename(rename: Any, buffers: Iterable[str]) -> None:
    """Raise unless `rename` is a mapping from names of results to names, or None."""
    names = sorted(set(buffers))
    if rename is not None and (not isinstance(rename, Mapping) or {*rename} - {*names}):
        raise ArgumentValueError(
            f"rename={rename!r} must be a dictionary with names of results, which are {names}"
        )


def free_name(name: str, taken: Collection[Hashable]) -> str:
    """Return a name, with underscores appended while it is taken."""
    while name in taken:
        name += "_"
    return name


def _extra_dims(
    results: ResultInfo, taken: Collection[Hashable], frame: Dims, data: xr.Dataset
) -> tuple[dict[str, Dims], dict[Hashable, Any]]:
    """Return the names of the extra dimensions of each result, and their coordinates.

    Results with the same axis share a dimension. If the name of an axis is taken or means another
    axis, the name of the result is put in front of it. The last axes may have all names of `frame`.
    Dimensions of the data have their coordinates: those that are made of an axis differ by
    rounding.
    """
    meaning: dict[str, tuple[Axis, int]] = {}
    dims: dict[str, Dims] = {}
    coords: dict[Hashable, Any] = {}
    for key, spec in results.buffers.items():
        axes = results.extra_axes[key]
        own: list[str] = []
        is_frame = bool(frame) and tuple(axis.name for axis in axes[-len(frame) :]) == frame
        others = set(taken).difference(frame if is_frame else ())
        for axis, n in zip(axes, spec.extra_shape, strict=True):
            name = axis.name
            while name in others or meaning.get(name, (axis, n)) != (axis, n) or name in own:
                name = f"{key}_{axis.name}" if name == axis.name else f"{name}_"
            meaning[name] = (axis, n)
            own.append(name)
            known: Any = data.coords.get(name)
            same = known is not None and known.size == n and known.to_index().nlevels == 1
            if same and axis_of_values(axis.name, known.values, known.attrs.get("units")) == axis:
                coords[name] = known.variable
            else:
                coords.update(coordinate(name, axis, n))
        dims[key] = tuple(own)
    return dims, coords


def default_layout(info: ResultInfo, rename: Mapping[str, Hashable] | None) -> Layout:
    """Return the layout of results in a Dataset with default names."""
    check_rename(rename, info.buffers)
    axes, n_nav = info.calibration.axes, len(info.nav_shape)
    names = tuple(axis.name for axis in axes)
    coords: dict[Hashable, Any] = {}
    for axis, n in zip(axes, (*info.nav_shape, *info.sig_shape), strict=True):
        coords.update(coordinate(axis.name, axis, n))
    labels = Labels(nav=names[:n_nav], sig=names[n_nav:], coords=xr.Dataset(coords=coords))
    return make_layout(info, labels, rename, {"udf_class": info.udf_name, **info.arguments})


def make_dataset(result: Any, layout: Layout, valid_masks: bool, visited: Any = None) -> xr.Dataset:
    """Return a result as a Dataset with this layout; `visited` is the mask of processed frames."""
    variables: dict[Hashable, Any] = {}
    for key, place in layout.places.items():
        variables[place.name] = (place.dims, result._plain(key), dict(place.attrs))
        if valid_masks:
            variables[place.mask_name] = (place.dims, result.valid_mask[key])
    if not layout.places:
        variables[VISITED] = (layout.nav, result._visited_frames if visited is None else visited)
    made = layout.coords.assign(variables).assign_attrs(layout.attrs)
    notes = result._info.notes
    return made.assign_attrs(note="\n".join(notes)) if notes else made


def dataset_in_file(
    result: Any, rename: Mapping[str, Hashable] | None
) -> tuple[xr.Dataset, dict[str, Hashable]]:
    """Return the Dataset in a file of a result, and the names of valid masks there."""
    info, own = result._info, result._own_masks
    layout, roi = default_layout(info, rename), info.grid.roi
    places = {name: layout.places[name] for name in own}
    masks = {place.mask_name: (place.dims, own[name]) for name, place in places.items()}
    dataset = make_dataset(result, layout, False).assign(masks)
    if roi is not None:  # also results without scan positions have their region
        name = free_name("roi", {*dataset.variables, *dataset.dims})
        dataset = dataset.assign_coords({name: (layout.nav, roi)})
        for axis, n in zip(info.calibration.axes, info.nav_shape, strict=False):
            dataset = dataset.assign_coords(coordinate(axis.name, axis, n))
    return dataset, {name: place.mask_name for name, place in places.items()}
