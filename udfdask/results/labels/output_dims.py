"""Names that a user gives to the axes of what a function of a frame returns."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.results.labels.labels import Labels
from udfdask.results.labels.layout import Layout


def name_output_dims(
    layout: Layout, key: str, shape: tuple[int, ...], names: Any, labels: Labels
) -> Layout:
    """Return a layout in which the extra dimensions of a nav result, of this shape, have names.

    Dimensions of the data among them get their coordinates back.
    """
    place = layout.places[key]
    _check(names, shape, labels, layout)
    dims = (*labels.nav, *names)
    gone = [dim for dim in labels.dims if dim not in dims]
    coords = labels.coords.drop_dims(gone, errors="ignore")
    return replace(layout, places={key: replace(place, dims=dims)}, coords=coords)


def _check(names: Any, shape: tuple[int, ...], labels: Labels, layout: Layout) -> None:
    """Raise unless there is a name for each axis, and one that is free or means the same."""
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise ArgumentTypeError(f"output_dims must be a list of names, not {names!r}")
    if len(names) != len(shape):
        raise ArgumentValueError(
            f"output_dims={names!r} names {len(names)} axes, but what the function returns has "
            f"the shape {shape}"
        )
    for name, n in zip(names, shape, strict=True):
        if not isinstance(name, Hashable):
            raise ArgumentTypeError(f"output_dims={names!r}: {name!r} cannot be a name")
        size = labels.coords.sizes.get(name, n) if name in labels.sig else n
        if size != n:
            raise ArgumentValueError(
                f"output_dims={names!r}: the data have {size} positions along {name!r}, what the "
                f"function returns has {n}: give it another name"
            )
    taken = {*labels.nav, *(c for c in layout.coords.coords if c not in labels.sig)}
    if len(set(names)) < len(names) or taken.intersection(names):
        raise ArgumentValueError(
            f"output_dims={names!r}: names must differ from each other and from the dimensions and "
            f"coordinates {sorted(taken, key=str)}"
        )
