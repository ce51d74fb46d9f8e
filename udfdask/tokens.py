"""Names that follow the code: a token of a run holds its UDFs' code and all that was chosen.

dask's own token of a class is its import path, which stays the same when the module is edited and
reloaded, and changes from process to process for a class of a notebook. Here the code counts:
bytecode, constants, defaults, closures, bases, and the functions and plain constants of the same
module that the code refers to.
"""

from __future__ import annotations

import dataclasses
import functools
import types
from typing import Any

import numpy as np
from dask.base import is_dask_collection, tokenize

from udfdask.udf import UDF

_CODE_LIKE = (
    type,
    types.FunctionType,
    types.CodeType,
    types.MethodType,
    staticmethod,
    classmethod,
    property,
    functools.cached_property,
    functools.partial,
)
# values of a module that code may refer to, beside plain ones
_DATA = (list, tuple, dict, set, frozenset, np.ndarray, np.generic, np.dtype)
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def tokenize_value(value: Any) -> str:
    """Return a token of any value: functions and classes by code, dataclasses by all fields."""
    # the text of plain values tells all of them apart, and dask would look at each by itself
    return str(tokenize(repr(_normal(value, set()))))


def _normal(value: Any, seen: set[int]) -> Any:
    """Return a value as plain ones: functions and classes as their code, others as dask's token."""
    if type(value) in _PLAIN:
        return value
    if is_dask_collection(value):  # a Delayed would claim to have any attribute
        return ("token", tokenize(value))
    if isinstance(value, _CODE_LIKE) or hasattr(value, "py_func"):
        return _normal_code(value, seen)
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        values = [(f.name, _normal(getattr(value, f.name), seen)) for f in fields]
        # the methods of a user's class are code as well
        own = type(value).__module__.split(".")[0] == "udfdask"
        return (type(value).__qualname__ if own else _normal(type(value), seen), values)
    if isinstance(value, UDF):
        return _normal((type(value), value._kwargs), seen)
    if type(value) in (list, tuple, set, frozenset, dict):
        if id(value) in seen:  # a container that holds itself
            return ("again", type(value).__name__)
        seen.add(id(value))
        try:
            return _container(value, seen)
        finally:
            seen.discard(id(value))
    return ("token", tokenize(value))


def _container(value: Any, seen: set[int]) -> Any:
    """Return the members of a list, tuple, set or dictionary."""
    if isinstance(value, dict):
        pairs = [(_normal(k, seen), _normal(v, seen)) for k, v in value.items()]
        return ("dict", sorted(pairs, key=lambda pair: str(pair[0])))
    members = [_normal(v, seen) for v in value]
    if isinstance(value, (set, frozenset)):
        # in an order that does not follow the hashes of strings, which differ between processes
        members.sort(key=lambda v: (type(v).__name__, repr(v)))
    return (type(value).__name__, members)


def _normal_code(value: Any, seen: set[int]) -> Any:
    """Return the code of a function, a class, or of something made of functions."""
    if isinstance(value, type):
        return _class(value, seen)
    if isinstance(value, types.FunctionType):
        return _function(value, seen)
    if isinstance(value, types.CodeType):
        return _code(value, seen)
    parts: list[Any]
    if isinstance(value, types.MethodType):
        parts = [value.__func__, value.__self__]
    elif isinstance(value, (staticmethod, classmethod)):
        parts = [value.__func__]
    elif isinstance(value, property):
        parts = [value.fget, value.fset, value.fdel]
    elif isinstance(value, functools.cached_property):
        parts = [value.func]
    elif isinstance(value, functools.partial):
        parts = [value.func, list(value.args), value.keywords]
    else:  # a function compiled by numba
        parts = [value.py_func, repr(getattr(value, "targetoptions", ""))]
    return (type(value).__name__, [_normal(p, seen) for p in parts])


def _class(cls: type, seen: set[int]) -> Any:
    """Return the code of a class and of its bases; classes of the standard library by name."""
    if cls.__module__ == "builtins" or cls.__module__.split(".")[0] in _LIBRARIES:
        return ("class", cls.__module__, cls.__qualname__)
    if id(cls) in seen:
        return ("class again", cls.__qualname__)
    seen.add(id(cls))
    body = {
        name: _normal(value, seen)
        for name, value in vars(cls).items()
        if name not in _IGNORED and not isinstance(value, _SLOT_TYPES)
    }
    bases = [_normal(base, seen) for base in cls.__bases__]
    return ("class", cls.__qualname__, sorted(body.items()), bases)


def _function(function: types.FunctionType, seen: set[int]) -> Any:
    """Return the code of a function with what it carries and refers to."""
    if id(function) in seen:
        return ("function again", function.__qualname__)
    if function.__module__ and function.__module__.split(".")[0] in _LIBRARIES:
        return ("function", function.__module__, function.__qualname__)
    seen.add(id(function))
    cells = [_normal(_content(cell), seen) for cell in function.__closure__ or ()]
    return (
        "function",
        _code(function.__code__, seen),
        _normal(function.__defaults__, seen),
        _normal(function.__kwdefaults__, seen),
        cells,
        _globals(function, seen),
    )


def _content(cell: types.CellType) -> Any:
    """Return what a closure cell holds; an empty cell (a class still being made) is None."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _code(code: types.CodeType, seen: set[int]) -> Any:
    """Return what of a code object decides its behaviour: no file name, no line numbers."""
    constants = [_normal(c, seen) for c in code.co_consts]
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return ("code", code.co_code, _typed(constants), names, code.co_flags)


def _typed(constants: list[Any]) -> list[Any]:
    """Return constants with their types: 1, 1.0 and True are equal but not the same code."""
    return [(type(c).__name__, c) for c in constants]


def _globals(function: types.FunctionType, seen: set[int]) -> Any:
    """Return the functions, classes and data of its module that a function names."""
    found = []
    for name in _names(function.__code__):
        if name not in function.__globals__:
            continue
        value = function.__globals__[name]
        own = getattr(value, "__module__", None) == function.__module__
        if isinstance(value, (*_PLAIN, *_DATA, functools.partial)) or (
            own and (isinstance(value, (types.FunctionType, type)) or hasattr(value, "py_func"))
        ):
            found.append((name, _normal(value, seen)))
    return found


def _names(code: types.CodeType) -> list[str]:
    """Return the global names that a code object, or one inside it, refers to, sorted."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names.update(_names(constant))
    return sorted(names)


_IGNORED = frozenset(
    {
        "__dict__",
        "__weakref__",
        "__module__",
        "__doc__",
        "__firstlineno__",
        "__static_attributes__",
        "__annotations__",
        "__annotate_func__",
        "__annotations_cache__",
        "__abstractmethods__",
        "_abc_impl",
        "__parameters__",
        "__orig_bases__",
        "__slotnames__",
        "__dataclass_fields__",  # what they decide is in the methods that they make
        "__dataclass_params__",
    }
)
_SLOT_TYPES = (types.MemberDescriptorType, types.GetSetDescriptorType)
# their code changes only with their version
_LIBRARIES = frozenset({"abc", "typing", "enum", "numpy", "scipy", "dask", "numba", "cupy"})
