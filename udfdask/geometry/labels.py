"""Names and labels of axes: of the data, of values that come with them, and of results.

xarray and HyperSpy are not imported: only their documented attributes are read.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Axis, axis_of_values
from udfdask.geometry.units import PIXELS, unit_of_quantity

Dims = tuple[Hashable, ...]


def check_axes(axes: Any, shape: Sequence[int], sig_dims: int) -> tuple[Axis, ...]:
    """Return the axes for data of this shape; raise unless there is a valid one per dimension."""
    if isinstance(axes, (str, bytes)) or not isinstance(axes, Sequence):
        raise ArgumentTypeError(
            f"axes must be a list of udfdask.Axis, one per dimension of the data, got {axes!r}"
        )
    for axis in axes:
        if not isinstance(axis, Axis):
            raise ArgumentTypeError(
                f"axes must contain udfdask.Axis(name='x', unit='nm', scale=0.5), got {axis!r}"
            )
    if len(axes) != len(shape):
        raise ArgumentValueError(
            f"axes must contain one Axis per dimension of the data, {len(shape) - sig_dims} of the "
            f"scan and then {sig_dims} of a frame, got {len(axes)}"
        )
    names = [axis.name for axis in axes]
    if len(set(names)) < len(names):
        raise ArgumentValueError(f"axes have the names {names}: each needs a name of its own")
    for axis, n in zip(axes, shape, strict=True):
        for what, given in (("labels", axis.labels), ("values", axis.values)):
            if given is not None and len(given) != n:
                raise ArgumentValueError(
                    f"the axis {axis.name!r} has {len(given)} {what}, the data have {n} positions"
                )
    return tuple(axes)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AxisLabels:
    """The names of the axes of an array, and the labels along them."""

    dims: Dims
    """Name of each axis."""
    indexes: Mapping[Hashable, Any]
    """Labels along the axes that have some: an index of pandas by the name of the axis."""
    is_loose: bool = False
    """Whether other names than those of the data mean nothing, as in HyperSpy."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DataLabels:
    """The labels of the data of a run."""

    nav: Dims
    """Name of each navigation axis."""
    sig: Dims
    """Name of each signal axis."""
    sizes: Mapping[Hashable, int]
    """Number of positions along each axis."""
    indexes: Mapping[Hashable, Any]
    """Labels along the axes that have some."""


def aligned(
    values: Any,
    own: AxisLabels | None,
    data: DataLabels,
    kind: str,
    *,
    what: str,
    name: str = "values",
    advice: str = "pass the values of all positions",
) -> Any:
    """Return an array with the axes of the scan, or of frames, first and in their order.

    It is repeated along axes of the scan that it does not have. Values of another `kind` than nav
    or sig, or without labels, stay as they are. `what`, its `name` in code, and `advice` about
    other positions are for messages.
    """
    dims = {"nav": data.nav, "sig": data.sig}.get(kind, ())
    if own is None or not dims or (own.is_loose and not set(dims) <= set(own.dims)):
        return values
    extra = [dim for dim in own.dims if dim not in dims]
    given = [dim for dim in dims if dim in own.dims]
    numbered = tuple(f"dim_{number}" for number in range(len(own.dims)))
    if not given and (kind == "nav" or own.dims == numbered):
        return values  # rows of frames, or names that xarray made up
    if kind == "sig" and len(given) < len(dims):
        raise ArgumentValueError(
            f"{what} has the dimensions {own.dims}, but the signal dimensions of the data are "
            f"{dims}: rename dimensions, or pass the plain array in this order"
        )
    last = [str(dim)[-1:].lower() for dim in data.sig]
    if own.dims and letters(own.indexes.get(own.dims[-1])) == ["y", "x"] and last == ["x", "y"]:
        raise ArgumentValueError(
            f"the components of {what} are called y and x, but the axes of frames are {data.sig}: "
            f"pass sig_dims={data.sig[::-1]}, or the plain array, with a component along each axis"
        )
    values = values.transpose([own.dims.index(dim) for dim in (*given, *extra)])
    for axis, dim in enumerate(dims):
        before = (slice(None),) * axis
        if dim not in given:
            values = values[(*before, np.newaxis)]
            shape = (*values.shape[:axis], data.sizes[dim], *values.shape[axis + 1 :])
            values = np.broadcast_to(values, shape)
            continue
        if values.shape[axis] != data.sizes[dim]:
            raise ArgumentValueError(
                f"{what} has {values.shape[axis]} positions along {dim!r}, the data have "
                f"{data.sizes[dim]}: {advice}"
            )
        index, wanted = own.indexes.get(dim), data.indexes.get(dim)
        if index is None or wanted is None or index.equals(wanted):
            continue
        order = index.get_indexer(wanted) if index.is_unique and wanted.is_unique else None
        if order is None or (order < 0).any():
            raise ArgumentValueError(
                f"{what} and the data have different coordinates along {dim!r}: "
                f"{first_to_last(index)} and {first_to_last(wanted)}. {advice}; if they differ "
                f"only by rounding, use {name}.assign_coords"
            )
        values = values[(*before, order)]
    return values


def check_order(own: AxisLabels | None, names: Sequence[Any], what: str) -> None:
    """Raise if values name the axes of the data in another order than the data, called `names`."""
    given = () if own is None else tuple(dim for dim in own.dims if dim in names)
    if own is not None and given != tuple(name for name in names if name in given):
        raise ArgumentValueError(
            f"{what} have the dimensions {own.dims}, the data {tuple(names)}: transpose the values"
        )


def letters(index: Any) -> list[str] | None:
    """Return the last letters of labels in lower case (y, x for ky, kx) if all are text."""
    labels = [] if index is None else list(index)
    is_text = labels and all(isinstance(label, str) for label in labels)
    return [label[-1:].lower() for label in labels] if is_text else None


def first_to_last(index: Any) -> str:
    """Describe the first and the last label of an index."""
    plain = index.tolist()  # Python numbers, whose repr is just the number
    return f"{plain[0]!r} to {plain[-1]!r}" if plain else "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the values of a name are: a result, or one position along an extra dimension of it."""

    result: str
    """Name of the result."""
    index: tuple[Any, ...] | None
    """Index of the position; None for the whole result."""
    axes: tuple[Axis, ...]
    """Extra dimensions of the values."""

    def of(self, values: Any) -> Any:
        """Return the values of the name from those of the result."""
        return values if self.index is None else values[self.index]


def find_place(name: object, extra_axes: Mapping[str, tuple[Axis, ...]]) -> Place | None:
    """Return where the values of a result, or of a label such as the name of a mask, are; or None.

    `extra_axes` are the extra dimensions of each result. A label is a name if only one has it.
    """
    if not isinstance(name, str):
        return None
    if name in extra_axes:
        return Place(result=name, index=None, axes=extra_axes[name])
    return _labels(extra_axes).get(name)


def labels_as_names(extra_axes: Mapping[str, tuple[Axis, ...]]) -> list[str]:
    """Return the labels that are names."""
    return [label for label, place in _labels(extra_axes).items() if place is not None]


def _labels(extra_axes: Mapping[str, tuple[Axis, ...]]) -> dict[str, Place | None]:
    """Return the place of each label along an extra dimension; None if several results have it."""
    places: dict[str, Place | None] = {}
    for result, axes in extra_axes.items():
        for k, axis in enumerate(axes):
            rest, after = (*axes[:k], *axes[k + 1 :]), (slice(None),) * (len(axes) - k - 1)
            for position, label in enumerate(axis.labels or ()):
                place = Place(result=result, index=(..., position, *after), axes=rest)
                places[label] = None if label in places else place
    return places


def few(names: Sequence[str]) -> str:
    """Return names as text, and the number of those that are left out if there are many."""
    return f"{list(names[:20])}{f' and {len(names) - 20} more' if len(names) > 20 else ''}"


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return a hint at the most similar known name, empty if none is similar."""
    by_lower = {one.lower(): one for one in known}
    near = difflib.get_close_matches(str(name).lower(), list(by_lower), n=1)
    return f"; did you mean {by_lower[near[0]]!r}?" if near else ""


def is_signal(values: Any) -> bool:
    """Return whether this is a HyperSpy signal."""
    return hasattr(values, "axes_manager") and hasattr(values, "_deepcopy_with_new_data")


def is_data_array(values: Any) -> bool:
    """Return whether this is a DataArray."""
    names = ("dims", "coords", "attrs", "data")
    return all(hasattr(values, name) for name in names) and not hasattr(values, "data_vars")


def is_labeled(values: Any) -> bool:
    """Return whether this is a HyperSpy signal or a DataArray."""
    return is_data_array(values) or is_signal(values)


def check_is_one_array(name: str, values: Any, variable: str) -> None:
    """Raise for results or Datasets, of which one variable is needed, such as raw_com."""
    if isinstance(values, Mapping):
        raise ArgumentTypeError(
            f"{name} is a {type(values).__name__}: pass one of its arrays, as result[{variable!r}]"
        )


def check_in_pixels(name: str, values: Any, remedy: str) -> None:
    """Raise if a signal or DataArray says that its values are not in pixels.

    `name` is the parameter, `remedy` names the result to pass instead, such as raw_shifts.
    """
    if getattr(values, "_signal_type", None) == "beam_shift":
        raise ArgumentValueError(
            f"{name} is {values!r}, a beam shift with x before y that points to the center: pass "
            f"{remedy} of a CoMUDF, with y before x; the shift from the center is "
            "-shifts.data[..., ::-1]"
        )
    unit = values.attrs.get("units") if is_data_array(values) else None
    if is_signal(values):
        unit = unit_of_quantity(values.metadata.get_item("Signal.quantity", default=None))
    if isinstance(unit, str) and unit.strip() and unit.strip() not in PIXELS:
        raise ArgumentValueError(
            f"{name} must be in pixels, but they are in {unit}: pass {remedy} of a CoMUDF"
        )


def plain_array(values: Any) -> Any:
    """Return the array of a signal, navigation axes first, or of a DataArray; others as they are.

    Raise ArgumentTypeError for a ragged signal.
    """
    if is_data_array(values):
        return values.data
    if not is_signal(values):
        return values
    if values.ragged:
        raise ArgumentTypeError(f"{values!r} is ragged: one value of the same shape is needed")
    order = tuple(axis.index_in_array for axis in ordered_axes(values))
    data = values.data
    return data if order == tuple(range(data.ndim)) else data.transpose(order)


def vectors_of(values: Any, what: str, nav: Collection[Hashable] = ()) -> Any:
    """Return vectors with y before x along the last axis, if a DataArray names the components.

    Raise for components of other names. There are none along the axes `nav`.
    """
    if not is_data_array(values):
        return values
    dims = [dim for dim in values.dims if dim not in nav]
    for dim in dims[::-1]:
        names = letters(values[dim].values.tolist()) if dim in values.coords else None
        if names is None or len(names) != 2:
            continue
        if sorted(names) == ["x", "y"]:
            values = values.transpose(..., dim)
            # an array in the right order keeps its key: equal data give equal tasks
            return values if names == ["y", "x"] else values.isel({dim: slice(None, None, -1)})
        if dim == dims[-1]:
            raise ArgumentValueError(
                f"{what} has components called {values[dim].values.tolist()}, expected names that "
                "end with y and x: rename them, or pass the plain array, y before x"
            )
    return values


def labels_of(values: Any) -> AxisLabels | None:
    """Return the labels of the axes of `plain_array(values)`; None if they are not known.

    The axes of a signal have names at most: HyperSpy itself compares only their sizes.
    """
    if is_data_array(values):
        indexes = {dim: values[dim].to_index() for dim in values.dims if dim in values.coords}
        return AxisLabels(dims=tuple(values.dims), indexes=indexes)
    if not is_signal(values):
        return None
    names = [axis.name if isinstance(axis.name, str) else None for axis in ordered_axes(values)]
    return None if None in names else AxisLabels(dims=tuple(names), indexes={}, is_loose=True)


def read_axis(axis: Any) -> Axis:
    """Return the name, unit and scale of HyperSpy's axis, if they are known."""
    # HyperSpy marks unknown values with an object of the package traits, not with None.
    name = axis.name if isinstance(axis.name, str) and axis.name != "None" else ""
    unit = axis.units if isinstance(axis.units, str) and axis.units else None
    if not axis.is_uniform:
        return axis_of_values(name, axis.axis, unit)
    scale, offset = float(axis.scale), float(axis.offset)
    if not (math.isfinite(scale) and math.isfinite(offset) and scale):
        return Axis(name=name)  # positions are numbered, as in axes of other files
    return Axis(name=name, unit=unit, scale=scale, offset=offset)


def axes_of_signal(signal: Any) -> tuple[Axis, ...]:
    """Return the axes of a signal, navigation axes first; unknown names are empty."""
    return tuple(map(read_axis, ordered_axes(signal)))


def axes_of_data_array(array: Any) -> tuple[Axis, ...]:
    """Return the axes that the coordinates of a DataArray describe."""
    return tuple(
        axis_of_values(str(dim), array[dim].values, array[dim].attrs.get("units"))
        if dim in array.coords
        else Axis(name=str(dim))
        for dim in array.dims
    )


def ordered_axes(signal: Any) -> tuple[Any, ...]:
    """Return the axes of a signal, slowest first, navigation axes before signal axes."""
    manager = signal.axes_manager
    return (*manager.navigation_axes[::-1], *manager.signal_axes[::-1])
