"""Find the places outside of buffers where a UDF can keep data, and compare them over time.

Such places are the attributes of its class, and the global variables, closures and default
arguments of its functions.
"""

from __future__ import annotations

import copy
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import cloudpickle
import numpy as np

from udfdask.udf import UDF

_FOREIGN = {"builtins", "typing", "abc", "enum", "numpy", "udfdask.udf", "udfdask.types"}
_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype)


class Place(NamedTuple):
    """A place that outlives a chunk and can keep data."""

    label: str
    """Description of the place for messages."""
    value: Any
    put: Callable[[Any], None] | None
    """Replaces the value; None for default arguments, which stay as they are."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The values of all such places at one time."""

    frozen: Mapping[str, Any]
    """Stand-ins of the values that can be compared, by label."""
    copies: Mapping[str, Any]
    """Copies of the values that can be copied, by label."""

    def changes(self, later: Snapshot) -> list[str]:
        """Return the labels of places whose values are different in a later snapshot."""
        labels = dict.fromkeys((*self.frozen, *later.frozen))
        return [k for k in labels if self.frozen.get(k, _NOTHING) != later.frozen.get(k, _NOTHING)]


_NOTHING = object()


def take_snapshot(cls: type[UDF]) -> Snapshot:
    """Return the values of all places where the methods of a class can keep data."""
    frozen, copies = {}, {}
    for place in _places(cls):
        frozen[place.label] = freeze(place.value)
        try:
            copies[place.label] = copy.deepcopy(place.value)
        except Exception:  # noqa: BLE001  # copying a user's object can raise anything
            continue
    return Snapshot(frozen, copies)


def restore(cls: type[UDF], snapshot: Snapshot, labels: list[str]) -> None:
    """Restore the values that some places have in a snapshot."""
    for place in list(_places(cls)):
        if place.put and place.label in labels and place.label in snapshot.copies:
            place.put(copy.deepcopy(snapshot.copies[place.label]))


def freeze(value: Any) -> Any:
    """Return a stand-in for a value of any type; equal values have equal stand-ins."""
    if isinstance(value, _PLAIN):
        return (type(value).__name__, repr(value))
    if isinstance(value, np.ndarray) and value.dtype != object:
        return ("array", str(value.dtype), value.shape, value.tobytes())
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, tuple(freeze(v) for v in value))
    if isinstance(value, (set, frozenset)):
        return (type(value).__name__, tuple(sorted(repr(freeze(v)) for v in value)))
    if isinstance(value, dict):
        return (type(value).__name__, tuple((repr(k), freeze(v)) for k, v in value.items()))
    try:
        pickled = cloudpickle.dumps(value)
        if pickled == cloudpickle.dumps(value):
            return ("pickled", pickled)
    except Exception:  # noqa: BLE001  # a lock or a file: compare its identity only
        pass
    return ("object", id(value))


def _places(cls: type[UDF]) -> Iterator[Place]:
    """Yield the places of a class, its bases, its functions, and the objects they refer to."""
    seen: set[int] = set()
    for base in cls.__mro__:
        if base.__module__.split(".")[0] not in _FOREIGN and base.__module__ not in _FOREIGN:
            yield from _places_of_class(base, seen)


def _places_of_class(cls: type, seen: set[int]) -> Iterator[Place]:
    """Yield the data attributes of a class, and the places of its functions."""
    if id(cls) in seen:
        return
    seen.add(id(cls))
    for name, value in list(vars(cls).items()):
        for function in _functions(value):
            yield from _places_of_function(function, seen)
        if not (name.startswith("__") and name.endswith("__")) and _is_data(value):
            label = f"class attribute {cls.__name__}.{name}"
            yield Place(label, value, partial(setattr, cls, name))


def _places_of_function(function: types.FunctionType, seen: set[int]) -> Iterator[Place]:
    """Yield the places of a function: global variables, closures and defaults."""
    if id(function) in seen:
        return
    seen.add(id(function))
    who = function.__name__
    for number, cell in enumerate(function.__closure__ or ()):
        name = function.__code__.co_freevars[number]
        try:
            value = cell.cell_contents
        except ValueError:  # still empty
            continue
        label = f"variable {name} outside {who}"
        put = partial(setattr, cell, "cell_contents")
        yield from _places_of_value(label, value, put, seen)
    for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        if _is_data(value) and not isinstance(value, _PLAIN):
            yield Place(f"default argument of {who}", value, None)
    module = function.__globals__
    for name in _names(function.__code__):
        if name in module:
            label = f"module global {name}"
            put = partial(module.__setitem__, name)
            yield from _places_of_value(label, module[name], put, seen, module.get("__name__"))


def _places_of_value(
    label: str,
    value: Any,
    put: Callable[[Any], None],
    seen: set[int],
    module: str | None = None,
) -> Iterator[Place]:
    """Yield the place of a value; for a function or class, the places inside it."""
    own = module is None or getattr(value, "__module__", None) == module
    for function in _functions(value):
        if own:
            yield from _places_of_function(function, seen)
    if isinstance(value, type):
        if own and value.__module__.split(".")[0] not in _FOREIGN and value is not UDF:
            yield from _places_of_class(value, seen)
    elif _is_data(value):
        yield Place(label, value, put)


def _functions(value: Any) -> list[types.FunctionType]:
    """Return the functions inside a class attribute or a global variable."""
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    parts = (value.fget, value.fset) if isinstance(value, property) else (value,)
    return [p for p in parts if isinstance(p, types.FunctionType)]


def _is_data(value: Any) -> bool:
    """Return whether a value is data, and not code."""
    not_data = (types.ModuleType, type, property, staticmethod, classmethod)
    slots = (types.MemberDescriptorType, types.GetSetDescriptorType)
    return not isinstance(value, (*not_data, *slots)) and not callable(value)


def _names(code: types.CodeType) -> list[str]:
    """Return the global names that a code object, or one inside it, refers to."""
    names = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names.update(dict.fromkeys(_names(constant)))
    return list(names)
