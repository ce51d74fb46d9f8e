"""Name containers and objects by content: by the data that pickle would write for them."""

from __future__ import annotations

import copyreg
import dataclasses
import enum
import threading
import types
from collections.abc import Iterable, Mapping
from typing import Any

from udfdask.tokens import origins
from udfdask.tokens.code import compiled_file
from udfdask.tokens.origins import library_name
from udfdask.tokens.walk import FLAT, Walk

_STATELESS = (type(threading.Lock()), type(threading.RLock()))


def name_sequence(walk: Walk, value: Any) -> Any:
    """Name a list or tuple by its items."""
    kind = type(value).__name__
    # plain items cannot contain references: no number is needed, and equal copies get equal names
    if all(type(v) in FLAT for v in value):
        return (kind, [walk.name(v) for v in value])
    return walk.again(value) or (kind, [walk.name(v) for v in value])


def name_dict(walk: Walk, value: Mapping[Any, Any]) -> Any:
    """Name a dictionary by its items in their order, because code may depend on the order."""
    flat = all(type(k) in FLAT and type(v) in FLAT for k, v in value.items())
    again = None if flat else walk.again(value)
    return again or ("dict", [(walk.name(k), walk.name(v)) for k, v in value.items()])


def name_set(walk: Walk, value: Any) -> Any:
    """Name a set by its items, sorted so that the order does not depend on their hashes."""
    kind = type(value).__name__
    if all(type(v) in FLAT for v in value):
        return (kind, sorted(repr(walk.name(v)) for v in value))
    again = walk.again(value)
    return again or (kind, sorted(repr(walk.apart(v)) for v in value))


def name_proxy(walk: Walk, proxy: Mapping[Any, Any]) -> Any:
    """Name a read-only or weak view of a dictionary."""
    return walk.again(proxy) or (type(proxy).__name__, walk.name(dict(proxy)))


def name_member(walk: Walk, member: enum.Enum) -> Any:
    """Name a member of an Enum; attributes with a leading underscore belong to the Enum class."""
    library = library_name(type(member))
    if library:
        return ("library", *library, member.name)
    more = {k: v for k, v in vars(member).items() if not k.startswith("_")}
    return walk.again(member) or (
        "member",
        walk.name(type(member)),
        member._name_,
        walk.name(member._value_),
        walk.name(more),
    )


def name_own(walk: Walk, value: Any) -> Any:
    """Name a frozen dataclass of udfdask by its fields; its cached values depend only on them."""
    fields = [(f.name, walk.name(getattr(value, f.name))) for f in dataclasses.fields(value)]
    return (type(value).__qualname__, fields)


def name_instance(walk: Walk, value: Any) -> Any:
    """Name an object by its class and by the data that pickle would write for it."""
    again = walk.again(value)
    if again:
        return again
    kind = type(value)
    if found := library_name(value):  # a callable of another type, such as NumPy's functions
        return ("library", *found)
    if kind in _STATELESS:
        return ("instance", kind.__qualname__)
    python = getattr(value, "py_func", None) if kind.__module__.startswith("numba.") else None
    if isinstance(python, types.FunctionType):  # compiled by numba, which pickles a random id
        options = getattr(value, "targetoptions", None)
        return (kind.__qualname__, walk.name(python), walk.name(options))
    reduce = copyreg.dispatch_table.get(kind)
    try:
        reduced = value.__reduce_ex__(4) if reduce is None else reduce(value)
    except Exception:  # noqa: BLE001  # it cannot be pickled, or the user's __reduce__ fails
        if hasattr(kind, "__dask_tokenize__"):
            return ("object", walk.name(kind), walk.name(value.__dask_tokenize__()))
        return walk.unnamed(value)
    if isinstance(reduced, str):  # a string is the name of the object in its module
        if not origins.is_found(value, reduced):  # such as a closure compiled by Cython
            return walk.unnamed(value)
        more = walk.name(getattr(value, "__dict__", None))
        return ("object", walk.name(kind), reduced, more, compiled_file(value))
    make, arguments, state, members, items, *rest = (*reduced, None, None, None, None)[:6]
    return (
        "object",
        walk.name(kind),
        walk.name(make),
        walk.name(arguments),
        walk.name(state),
        [walk.name(v) for v in members or ()],
        [(walk.name(k), walk.name(v)) for k, v in items or ()],
        [walk.name(v) for v in rest],
    )


def name_parts(walk: Walk, value: Any, base: type, names: Iterable[str]) -> Any:
    """Name an object that cannot be pickled by the attributes in `names`."""
    again = walk.again(value)
    if again:
        return again
    kind = type(value)
    more = None if kind is base else walk.name(dict(getattr(value, "__dict__", {})))
    return (walk.name(kind), [walk.name(getattr(value, n, None)) for n in names], more)
