"""Find the places outside of buffers where a UDF can keep data.

Such places are the attributes of its class, and the global variables, closures and default
arguments of its functions.
"""

from __future__ import annotations

import contextlib
import copy
import types
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from udfdask.base.names.naming import identity_of
from udfdask.udf import UDF

_FOREIGN = {"builtins", "typing", "abc", "enum", "numpy", "udfdask.udf", "udfdask.base.types"}


class Place(NamedTuple):
    """A place that outlives a chunk and can keep data: a stand-in of its value, and a copy.

    `put` replaces the value; it is None for default arguments.
    """

    identity: Any
    value: Any
    put: Callable[[Any], None] | None


def held_outside_buffers(cls: type[UDF]) -> dict[str, Place]:
    """Return what a user's class and its functions hold, by names for messages."""
    found = {}
    for label, value, put in _places(cls):
        kept = value
        with contextlib.suppress(Exception):  # copying a user's object can raise anything
            kept = copy.deepcopy(value)
        found[label] = Place(identity_of(value), kept, put)
    return found


def _places(cls: type[UDF]) -> Iterator[tuple[str, Any, Callable[[Any], None] | None]]:
    """Yield label, value and setter of the places of a class, its bases and their functions."""
    todo: list[Any] = [base for base in cls.__mro__ if not _is_foreign(base)]
    modules = {base.__module__ for base in todo}
    seen: set[int] = set()
    while todo:
        thing = todo.pop(0)
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        for label, value, put in _members(thing):
            code = _code_in(value)
            if not code and not isinstance(value, types.ModuleType) and not callable(value):
                yield label, value, put
            # what other modules define is theirs
            todo += [
                part
                for part in code
                if part.__module__ in modules or label.startswith(("class", "variable"))
            ]


def _is_foreign(cls: type) -> bool:
    """Return whether the attributes of a class are not the user's."""
    return cls is UDF or not _FOREIGN.isdisjoint({cls.__module__, cls.__module__.split(".")[0]})


def _code_in(value: Any) -> list[Any]:
    """Return the functions and classes that a value is or consists of."""
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    if isinstance(value, property):
        return [part for part in (value.fget, value.fset) if isinstance(part, types.FunctionType)]
    if isinstance(value, type):
        return [] if _is_foreign(value) else [value]
    return [value] if isinstance(value, types.FunctionType) else []


def _members(thing: Any) -> Iterator[tuple[str, Any, Callable[[Any], None] | None]]:
    """Yield label, value and setter of what a class or a function refers to."""
    if isinstance(thing, type):
        for name, value in list(vars(thing).items()):
            if not (name.startswith("__") and name.endswith("__")) or _code_in(value):
                yield (
                    f"class attribute {thing.__name__}.{name}",
                    value,
                    partial(setattr, thing, name),
                )
        return
    who, scope = thing.__name__, thing.__globals__
    for name, cell in zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # still empty
            put = partial(setattr, cell, "cell_contents")
            yield f"variable {name} outside {who}", cell.cell_contents, put
    for value in (*(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()):
        yield f"default argument of {who}", value, None
    for name in _global_names(thing.__code__):
        if name in scope:
            yield f"module global {name}", scope[name], partial(scope.__setitem__, name)


def _global_names(code: types.CodeType) -> set[str]:
    """Return the global names that a code object, or one inside it, refers to."""
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return set(code.co_names).union(*map(_global_names, inner))
