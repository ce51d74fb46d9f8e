"""Parameters of a UDF and its task data, and the dask collections nested in them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, Sequence
from typing import Any

from udfdask.base.types import is_lazy
from udfdask.errors import UDFError

Place = tuple[int, ...]
"""Path to a member of nested containers: an index in each of them, also in dictionaries."""


def lazy_places(value: Any, around: tuple[int, ...] = ()) -> Iterator[Place]:
    """Yield the places of dask collections in containers; `around` are ids of outer containers."""
    if id(value) in around:  # the container contains itself
        return
    for k, member in enumerate(_members(value)):
        if is_lazy(member):
            yield (k,)
        else:
            for rest in lazy_places(member, (*around, id(value))):
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


class Values:
    """Values by name; names in the `__dict__` of the instance hide methods of this class."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.__dict__.update(values)

    def __getitem__(self, name: str) -> Any:
        return self.__dict__[name]

    def __contains__(self, name: object) -> bool:
        return name in self.__dict__

    def __iter__(self) -> Iterator[str]:
        return iter(self.__dict__)

    def __len__(self) -> int:
        return len(self.__dict__)

    def keys(self) -> KeysView[str]:
        """Return the names, as those of a dictionary.

        Returns
        -------
        KeysView
            The names.
        """
        return self.__dict__.keys()

    def items(self) -> ItemsView[str, Any]:
        """Return the pairs of name and value.

        Returns
        -------
        ItemsView
            The pairs, as those of a dictionary.
        """
        return self.__dict__.items()

    def get(self, name: str, default: Any = None) -> Any:
        """Return a value, or `default` if there is none of that name.

        Parameters
        ----------
        name : str
            The name.
        default : object
            Returned if there is no value of this name.

        Returns
        -------
        object
            The value, or `default`.
        """
        return self.__dict__.get(name, default)


class Params(Values):
    """Hold the parameters of a UDF, as `self.params`, by attribute or by item; read-only.

    Examples
    --------
    >>> import udfdask as ud
    >>> udf = ud.UDF(radius=3, center=(8, 8))
    >>> udf.params.radius, udf.params["center"], udf.params.get("order", 1), list(udf.params)
    (3, (8, 8), 1, ['radius', 'center'])
    """

    def __setattr__(self, name: str, value: Any) -> None:
        raise UDFError(
            f"parameters cannot be assigned (params.{name} = ...): pass them to super().__init__, "
            "and return values that a task computes from get_task_data"
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            for own in self.__dict__:
                # inside a class, Python replaces params.__own by params._Class__own
                if own.startswith("__") and name.endswith(own):
                    return self.__dict__[own]
        raise AttributeError(f"there is no parameter {name!r}; there are {sorted(self.__dict__)}")

    def __repr__(self) -> str:
        return f"Params({', '.join(f'{k}={v!r}' for k, v in self.__dict__.items())})"


class TaskData(Values):
    """Hold the task data of a UDF, as `self.task_data`, by attribute or by item.

    Examples
    --------
    >>> import udfdask as ud
    >>> class ScaledUDF(ud.UDF):
    ...     def get_task_data(self):
    ...         return {"factor": 2}
    ...     def process_frame(self, frame):
    ...         self.results.total[:] = self.task_data.factor * frame.sum()
    """

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"there is no task data {name!r}; get_task_data returned {sorted(self.__dict__)}"
        )
