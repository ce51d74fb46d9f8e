"""Find what a UDF can keep outside of buffers: in class attributes and in variables of its code."""

from __future__ import annotations

import contextlib
import inspect
from types import FunctionType, ModuleType
from typing import Any

from udfdask.base.names.naming import identity_of
from udfdask.udf import UDF


def held_outside_buffers(cls: type[UDF]) -> dict[str, Any]:
    """Return stand-ins of the values that a class and its functions hold, by names for messages."""
    todo: list[Any] = list(cls.__mro__)
    modules = {base.__module__ for base in todo}
    found: dict[str, Any] = {}
    for thing in todo:  # which grows
        for label, member in _members(thing).items():
            value = getattr(member, "__func__", member)
            if isinstance(value, (type, FunctionType)):
                # what other modules define is theirs
                if value.__module__ in modules and value not in todo:
                    todo.append(value)
            elif not callable(value) and not isinstance(value, ModuleType):
                found.setdefault(label, identity_of(value))
    return found


def _members(thing: Any) -> dict[str, Any]:
    """Return what a class or a function refers to, by names for messages."""
    who = thing.__name__
    if isinstance(thing, type):
        return {
            f"class attribute {who}.{name}": value
            for name, value in vars(thing).items()
            if isinstance(value, FunctionType) or not name.startswith("__")
        }
    found = {f"default argument of {who}": [thing.__defaults__, thing.__kwdefaults__]}
    with contextlib.suppress(ValueError):  # a variable that is still empty
        scope = inspect.getclosurevars(thing)
        found |= {f"variable {name} outside {who}": v for name, v in scope.nonlocals.items()}
        found |= {f"module global {name}": v for name, v in scope.globals.items()}
    return found
