"""Dask collections inside of parameters: where they are in lists, tuples and dictionaries."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Place = tuple[int, ...]
"""The way to a member: an index in each container, in a dictionary that of the item."""


def is_lazy(value: Any) -> bool:
    """Return whether a value is a dask collection; xarray's objects are only if their data are."""
    # asked of the type, since a Delayed claims to have any attribute
    has_graph = hasattr(type(value), "__dask_graph__")
    return has_graph and value.__dask_graph__() is not None


def lazy_places(value: Any) -> Iterator[Place]:
    """Find the dask collections inside of lists, tuples and dictionaries.

    Parameters
    ----------
    value : object
        A parameter.

    Yields
    ------
    tuple of int
        The place of each collection; not for `value` itself.
    """
    yield from _places(value, ())


def _places(value: Any, around: tuple[int, ...]) -> Iterator[Place]:
    """Yield places in a container; `around` are the ids of those it is in."""
    if id(value) in around:  # it holds itself
        return
    for k, member in enumerate(_members(value)):
        if is_lazy(member):
            yield (k,)
        else:
            for rest in _places(member, (*around, id(value))):
                yield (k, *rest)


def member_at(value: Any, place: Sequence[int]) -> Any:
    """Return the member of nested containers at a place."""
    for k in place:
        value = _members(value)[k]
    return value


def with_members(value: Any, members: Mapping[Place, Any]) -> Any:
    """Return nested containers with other members at some places; `()` stands for the value."""
    if () in members:
        return members[()]
    inner: dict[int, dict[Place, Any]] = {}
    for (first, *rest), member in members.items():
        inner.setdefault(first, {})[tuple(rest)] = member
    given = list(_members(value))
    for k, each in inner.items():
        given[k] = with_members(given[k], each)
    if isinstance(value, dict):
        changed = value.copy()  # a subclass stays one
        changed.update(zip(value, given, strict=True))
        return changed
    if hasattr(value, "_make"):  # a namedtuple
        return value._make(given)
    return type(value)(given)


def with_all(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a value with each dask collection inside of it changed."""
    places = list(lazy_places(value))
    return with_members(value, {p: change(member_at(value, p)) for p in places})


def hidden_collection(value: Any, around: tuple[int, ...] = ()) -> str | None:
    """Return the type of a set or dataclass with a dask collection in it, if there is one."""
    if id(value) in around or is_lazy(value):
        return None
    opaque: list[Any] = []
    if isinstance(value, (set, frozenset)):
        opaque = list(value)
    # those of udfdask take care of theirs
    elif dataclasses.is_dataclass(value) and not type(value).__module__.startswith("udfdask."):
        opaque = [getattr(value, f.name, None) for f in dataclasses.fields(value)]
    if any(map(is_lazy, opaque)):
        return type(value).__name__
    inside = (*_members(value), *opaque)
    found = (hidden_collection(member, (*around, id(value))) for member in inside)
    return next(filter(None, found), None)


def _members(value: Any) -> Any:
    """Return the members of a list, tuple or dictionary; nothing for all else."""
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, (list, tuple)) else ()
