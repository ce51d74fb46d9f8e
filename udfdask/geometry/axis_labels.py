"""Labels of axes: checked, read, and aligned."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Axis


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
        _check_positions(axis, n)
    return tuple(axes)


def _check_positions(axis: Axis, n: int) -> None:
    if axis.labels is not None and len(axis.labels) != n:
        raise ArgumentValueError(
            f"the axis {axis.name!r} has {len(axis.labels)} labels, the data have {n} positions"
        )
    if axis.values is not None and len(axis.values) != n:
        raise ArgumentValueError(
            f"the axis {axis.name!r} has {len(axis.values)} values, the data have {n} positions"
        )


Dims = tuple[Hashable, ...]


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

    It is repeated along axes of the scan that it does not have. `kind` is "nav" or "sig"; values of
    another kind, or without labels, are returned as they are. In messages, `what` says what was
    given, `name` is its name in code, and `advice` says what to do about other positions.
    """
    dims = {"nav": data.nav, "sig": data.sig}.get(kind, ())
    if own is None or not dims or (own.is_loose and not set(dims) <= set(own.dims)):
        return values
    extra = [dim for dim in own.dims if dim not in dims]
    given = [dim for dim in dims if dim in own.dims]
    if not given and (kind == "nav" or _are_numbered(own.dims)):
        return values  # rows of frames, or names that xarray made up
    if kind == "sig" and len(given) < len(dims):
        raise ArgumentValueError(
            f"{what} has the dimensions {own.dims}, but the signal dimensions of the data are "
            f"{dims}: rename dimensions, or pass the plain array in this order"
        )
    _check_components(own, data, what)
    values = values.transpose([own.dims.index(dim) for dim in (*given, *extra)])
    for axis, dim in enumerate(dims):
        before = (slice(None),) * axis
        if dim not in given:
            values = values[(*before, np.newaxis)]
            shape = (*values.shape[:axis], data.sizes[dim], *values.shape[axis + 1 :])
            values = np.broadcast_to(values, shape)
            continue
        order = _order(dim, values.shape[axis], own, data, (what, name, advice))
        if order is not None:
            values = values[(*before, order)]
    return values


def check_order(own: AxisLabels | None, names: Sequence[Any], what: str) -> None:
    """Raise if values name the axes of the data in another order than the data, called `names`."""
    given = () if own is None else tuple(dim for dim in own.dims if dim in names)
    if own is not None and given != tuple(name for name in names if name in given):
        raise ArgumentValueError(
            f"{what} have the dimensions {own.dims}, the data {tuple(names)}: transpose the values"
        )


def _are_numbered(dims: Dims) -> bool:
    """Return whether these are the names that xarray gives to axes without a name."""
    return dims == tuple(f"dim_{number}" for number in range(len(dims)))


def _check_components(own: AxisLabels, data: DataLabels, what: str) -> None:
    """Raise if vectors have y before x, but frames have x before y."""
    last = [str(dim)[-1:].lower() for dim in data.sig]
    if own.dims and letters(own.indexes.get(own.dims[-1])) == ["y", "x"] and last == ["x", "y"]:
        raise ArgumentValueError(
            f"the components of {what} are called y and x, but the axes of frames are {data.sig}: "
            f"pass sig_dims={data.sig[::-1]}, or the plain array, with a component along each axis"
        )


def letters(index: Any) -> list[str] | None:
    """Return the last letters of labels in lower case: y, x for ky, kx; None if not all are text.

    Examples
    --------
    >>> from udfdask.geometry.axis_labels import letters
    >>> letters(["dy", "dx"]), letters([0, 1]), letters(None)
    (['y', 'x'], None, None)
    """
    labels = None if index is None else list(index)
    if not labels or not all(isinstance(label, str) for label in labels):
        return None
    return [label[-1:].lower() for label in labels]


def _order(
    dim: Hashable, size: int, own: AxisLabels, data: DataLabels, words: tuple[str, str, str]
) -> Any:
    """Return the positions of the labels of the data along a dimension; None if all are there."""
    what, name, advice = words
    if size != data.sizes[dim]:
        raise ArgumentValueError(
            f"{what} has {size} positions along {dim!r}, the data have {data.sizes[dim]}: {advice}"
        )
    if dim not in own.indexes or dim not in data.indexes:
        return None
    index, wanted = own.indexes[dim], data.indexes[dim]
    if index.equals(wanted):
        return None
    order = index.get_indexer(wanted) if index.is_unique and wanted.is_unique else None
    if order is None or (order < 0).any():
        raise ArgumentValueError(
            f"{what} and the data have different coordinates along {dim!r}: "
            f"{first_to_last(index)} and {first_to_last(wanted)}. {advice}; if they differ only by "
            f"rounding, use {name}.assign_coords"
        )
    return order


def first_to_last(index: Any) -> str:
    """Describe the first and the last label of an index."""
    plain = index.tolist()  # Python numbers, whose repr is just the number
    return f"{plain[0]!r} to {plain[-1]!r}" if plain else "none"
