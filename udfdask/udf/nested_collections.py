"""Find and replace dask collections in parameters that are lists, tuples or dictionaries."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Place = tuple[int, ...]
"""Path to a member of nested containers: an index in each of them, also in dictionaries."""


def is_lazy(value: Any) -> bool:
    """Return whether a value is a dask collection; an xarray object is one if its data are."""
    # look at the type, because a Delayed has any attribute
    has_graph = hasattr(type(value), "__dask_graph__")
    return has_graph and value.__dask_graph__() is not None


def lazy_places(value: Any) -> Iterator[Place]:
    """Find the dask collections in lists, tuples and dictionaries.

    Parameters
    ----------
    value : object
        A parameter.

    Yields
    ------
    tuple of int
        The place of each collection, except `value` itself.
    """
    yield from _places(value, ())


def _places(value: Any, around: tuple[int, ...]) -> Iterator[Place]:
    """Yield places in a container; `around` are the ids of the containers around it."""
    if id(value) in around:  # the container contains itself
        return
    for k, member in enumerate(_members(value)):
        if is_lazy(member):
            yield (k,)
        else:
            for rest in _places(member, (*around, id(value))):
                yield (k, *rest)


def member_at(value: Any, place: Sequence[int]) -> Any:
    """Return a member of nested containers."""
    for k in place:
        value = _members(value)[k]
    return value


def with_members(value: Any, members: Mapping[Place, Any]) -> Any:
    """Replace members of nested containers; the place `()` replaces the value itself."""
    if () in members:
        return members[()]
    inner: dict[int, dict[Place, Any]] = {}
    for (first, *rest), member in members.items():
        inner.setdefault(first, {})[tuple(rest)] = member
    replaced = list(_members(value))
    for k, each in inner.items():
        replaced[k] = with_members(replaced[k], each)
    if isinstance(value, dict):
        changed = value.copy()  # of the same subclass
        changed.update(zip(value, replaced, strict=True))
        return changed
    if hasattr(value, "_make"):  # a namedtuple
        return value._make(replaced)
    return type(value)(replaced)


def with_all(value: Any, change: Callable[[Any], Any]) -> Any:
    """Apply a function to each dask collection in a value; return a changed copy."""
    places = list(lazy_places(value))
    return with_members(value, {p: change(member_at(value, p)) for p in places})


def hidden_collection(value: Any, around: tuple[int, ...] = ()) -> str | None:
    """Return the type name of a set or dataclass that contains a dask collection, or None."""
    if id(value) in around or is_lazy(value):
        return None
    opaque: list[Any] = []
    if isinstance(value, (set, frozenset)):
        opaque = list(value)
    # dataclasses of udfdask look after their own collections
    elif dataclasses.is_dataclass(value) and not type(value).__module__.startswith("udfdask."):
        opaque = [getattr(value, f.name, None) for f in dataclasses.fields(value)]
    if any(map(is_lazy, opaque)):
        return type(value).__name__
    members = (*_members(value), *opaque)
    names = (hidden_collection(member, (*around, id(value))) for member in members)
    return next(filter(None, names), None)


def _members(value: Any) -> Any:
    """Return the members of a list, tuple or dictionary; none for other values."""
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, (list, tuple)) else ()
