"""Find results, and positions along their extra dimensions, by name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from udfdask.arrays.geometry.axes import Axis

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
