"""Values that come with labels: read in the order of the data, and found by label.

Neither package is imported: only their documented attributes are read.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Axis
from udfdask.geometry.axis_labels import AxisLabels, letters
from udfdask.geometry.units import PIXELS, unit_of_quantity

_MOST_NAMES = 20  # in a message


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
    """Return where the values of a result, or of a label such as the name of a mask, are.

    `extra_axes` are the extra dimensions of each result. A label is a name if only one result has
    it. Return None for an unknown name.
    """
    if not isinstance(name, str):
        return None
    if name in extra_axes:
        return Place(result=name, index=None, axes=extra_axes[name])
    return _labels(extra_axes).get(name)


def labels_as_names(extra_axes: Mapping[str, tuple[Axis, ...]]) -> list[str]:
    """Return the labels that are names."""
    return [label for label, place in _labels(extra_axes).items() if place is not None]


def few(names: Sequence[str]) -> str:
    """Return names as text, and the number of those that are left out if there are many."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{list(names[:_MOST_NAMES])}{more}"


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return a hint at the most similar known name, empty if none is similar."""
    by_lower = {one.lower(): one for one in known}
    near = difflib.get_close_matches(str(name).lower(), list(by_lower), n=1)
    return f"; did you mean {by_lower[near[0]]!r}?" if near else ""


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


def is_lazy(values: Any) -> bool:
    """Return whether these are to be computed by dask; a DataArray in memory has no graph."""
    graph = getattr(values, "__dask_graph__", None)
    return callable(graph) and graph() is not None


def is_signal(values: Any) -> bool:
    """Return whether this is a HyperSpy signal."""
    return hasattr(values, "axes_manager") and hasattr(values, "_deepcopy_with_new_data")


def is_data_array(values: Any) -> bool:
    """Return whether this is a DataArray."""
    named = hasattr(values, "dims") and hasattr(values, "coords") and hasattr(values, "attrs")
    return named and hasattr(values, "data") and not hasattr(values, "data_vars")


def is_labeled(values: Any) -> bool:
    """Return whether this is a HyperSpy signal or a DataArray."""
    return is_data_array(values) or is_signal(values)


def unit_of_values(values: Any) -> str | None:
    """Return the unit that a HyperSpy signal or a DataArray has; None if it is not known."""
    if is_signal(values):
        return unit_of_quantity(values.metadata.get_item("Signal.quantity", default=None))
    unit = getattr(values, "attrs", {}).get("units") if is_data_array(values) else None
    return unit if isinstance(unit, str) else None


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
    unit = unit_of_values(values)
    if unit is not None and unit.strip() and unit.strip() not in PIXELS:
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
    order = tuple(axis.index_in_array for axis in _axes(values))
    data = values.data
    return data if order == tuple(range(data.ndim)) else data.transpose(order)


def vectors_of(values: Any, what: str, nav: Collection[Hashable] = ()) -> Any:
    """Return vectors with y before x along the last axis, if a DataArray names the components.

    Other values are returned unchanged. Raise for components of other names. `nav` names axes along
    which there are no components.
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
    names = [axis.name if isinstance(axis.name, str) else None for axis in _axes(values)]
    return None if None in names else AxisLabels(dims=tuple(names), indexes={}, is_loose=True)


def _axes(signal: Any) -> tuple[Any, ...]:
    """Return the axes of a signal, slowest first, navigation axes before signal axes."""
    manager = signal.axes_manager
    return (*manager.navigation_axes[::-1], *manager.signal_axes[::-1])
