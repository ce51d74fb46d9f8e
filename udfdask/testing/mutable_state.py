"""What a UDF's class, its functions and its module remember: pictures of it, to compare."""

from __future__ import annotations

import copy
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import cloudpickle
import numpy as np

from udfdask.udf import UDF

_FOREIGN = {"builtins", "typing", "abc", "enum", "numpy", "udfdask.udf", "udfdask.types"}
_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place that outlives a chunk and may hold data."""

    label: str
    """What it is, in words."""
    value: Any
    """What it holds."""
    put: Callable[[Any], None]
    """Puts something else there."""


@dataclass(frozen=True, slots=True)
class Picture:
    """What all such places held at one time."""

    frozen: Mapping[str, Any]
    """Comparable stand-ins of the values, by label."""
    copies: Mapping[str, Any]
    """Copies of the values that can be copied, by label."""

    def changes(self, later: Picture) -> list[str]:
        """Return the labels of places that hold something else in a later picture."""
        labels = dict.fromkeys((*self.frozen, *later.frozen))
        return [k for k in labels if self.frozen.get(k, _NOTHING) != later.frozen.get(k, _NOTHING)]

    def text(self, label: str) -> str:
        """Return what a place held, in a few characters."""
        shown = repr(self.copies[label]) if label in self.copies else "nothing"
        return shown if len(shown) <= 40 else shown[:37] + "..."


_NOTHING = object()


def take_picture(cls: type[UDF]) -> Picture:
    """Return a picture of all places that the methods of a class can keep something in."""
    frozen, copies = {}, {}
    for place in _places(cls):
        frozen[place.label] = freeze(place.value)
        try:
            copies[place.label] = copy.deepcopy(place.value)
        except Exception:  # noqa: BLE001  # whatever the object of a user says to that
            continue
    return Picture(frozen, copies)


def restore(cls: type[UDF], picture: Picture, labels: list[str]) -> None:
    """Put the values of a picture back."""
    for place in list(_places(cls)):
        if place.label in labels and place.label in picture.copies:
            place.put(copy.deepcopy(picture.copies[place.label]))


def freeze(value: Any) -> Any:
    """Return something that is equal for equal values of any type."""
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
    except Exception:  # noqa: BLE001  # a lock or a file: only whether it is the same one
        pass
    return ("object", id(value))


def _places(cls: type[UDF]) -> Iterator[Place]:
    """Yield the places of a class, its bases, its functions and what these name."""
    seen: set[int] = set()
    for base in cls.__mro__:
        if base.__module__.split(".")[0] not in _FOREIGN and base.__module__ not in _FOREIGN:
            yield from _of_class(base, seen)


def _of_class(cls: type, seen: set[int]) -> Iterator[Place]:
    """Yield the data attributes of a class, and the places of its functions."""
    if id(cls) in seen:
        return
    seen.add(id(cls))
    for name, value in list(vars(cls).items()):
        for function in _functions(value):
            yield from _of_function(function, seen)
        if not (name.startswith("__") and name.endswith("__")) and _is_data(value):
            label = f"class attribute {cls.__name__}.{name}"
            yield Place(label=label, value=value, put=_setter(cls, name))


def _of_function(function: types.FunctionType, seen: set[int]) -> Iterator[Place]:
    """Yield what a function can keep: globals and closures it names, defaults, attributes."""
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
        yield from _of_value(f"variable {name} outside {who}", value, _cell_setter(cell), seen, who)
    for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        if _is_data(value) and not isinstance(value, _PLAIN):
            yield Place(label=f"default argument of {who}", value=value, put=_ignore)
    for name, value in vars(function).items():
        if _is_data(value):
            yield Place(
                label=f"attribute {who}.{name}", value=value, put=_item_setter(vars(function), name)
            )
    module = function.__globals__
    for name in _names(function.__code__):
        if name in module:
            label = f"module global {name}"
            put = _item_setter(module, name)
            yield from _of_value(label, module[name], put, seen, who, module.get("__name__"))


def _of_value(
    label: str,
    value: Any,
    put: Callable[[Any], None],
    seen: set[int],
    who: str,
    module: str | None = None,
) -> Iterator[Place]:
    """Yield the place of a value that a function names, or those of the function or class it is."""
    own = module is None or getattr(value, "__module__", None) == module
    for function in _functions(value):
        if own:
            yield from _of_function(function, seen)
    if isinstance(value, type):
        if own and value.__module__.split(".")[0] not in _FOREIGN and value is not UDF:
            yield from _of_class(value, seen)
    elif _is_data(value):
        yield Place(label=label, value=value, put=put)


def _functions(value: Any) -> list[types.FunctionType]:
    """Return the functions that a class attribute or a global is made of."""
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    parts = (value.fget, value.fset) if isinstance(value, property) else (value,)
    return [p for p in parts if isinstance(p, types.FunctionType)]


def _is_data(value: Any) -> bool:
    """Return whether a value could be something that is kept."""
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


def _setter(cls: type, name: str) -> Callable[[Any], None]:
    return lambda value: setattr(cls, name, value)


def _cell_setter(cell: types.CellType) -> Callable[[Any], None]:
    return lambda value: setattr(cell, "cell_contents", value)


def _item_setter(module: dict[str, Any], name: str) -> Callable[[Any], None]:
    return lambda value: module.__setitem__(name, value)


def _ignore(value: Any) -> None:
    """Leave default arguments as they are."""
