"""Compute tokens of values: walk through a value and all that it refers to, and hash the names.

dask's token of a class is its import path, which stays when the module is edited. Here objects are
named by the data that pickle would write for them. An object that the walk meets again is named by
its number: objects can refer to themselves, and equal objects stay distinct.
"""

from __future__ import annotations

import copyreg
import dataclasses
import functools
import hashlib
import os
import sys
import threading
import types
import uuid
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping
from pathlib import PurePath
from typing import Any, Literal

import numpy as np
from dask.base import is_dask_collection, tokenize

from udfdask.base.names import code, origins

PLAIN = frozenset(map(type, (True, 0.0, 0j, "", b"", None, ..., NotImplemented)))
FLAT = PLAIN | {int}
"""Types of values that are their own names and cannot contain references."""

Reference = tuple[Literal["text", "library"], str]
"""What a value refers to: a text, which can be the path of a file or the name of a setting, or a
module of a library."""

_STATELESS = (type(threading.Lock()), type(threading.RLock()))


class UnnamedError(Exception):
    """A value contains an object that has no reliable name."""

    def __init__(self, thing: Any) -> None:
        super().__init__(thing)
        self.thing = thing


class Walk:
    """Name values as nested tuples and lists of plain values.

    `describe` returns the name of a value that is not plain, and can call `name` for its parts.
    `unnamed` returns a substitute for an object that has no reliable name.
    """

    def __init__(
        self,
        unnamed: Callable[[Any], Any],
        describe: Callable[[Walk, Any], Any],
        noted: set[Reference],
    ) -> None:
        self.unnamed = unnamed
        self.noted = noted
        """What the value refers to."""
        self._describe = describe
        self._numbers: dict[int, int] = {}
        # keep the objects alive, because Python can reuse the id of a deleted object
        self._kept: list[Any] = []

    def name(self, value: Any) -> Any:
        """Return a value as nested tuples and lists of plain values."""
        kind = type(value)
        if kind in PLAIN:
            if kind is str:
                self.noted.add(("text", value))
            return value
        if kind is int:
            # most integers are small; Python limits the number of decimal digits
            return value if -1 << 63 < value < 1 << 63 else ("int", hex(value))
        return self._describe(self, value)

    def library(self, module: str, *names: str) -> Any:
        """Name a module of a library, or an object in it."""
        self.noted.add(("library", module))
        # what decimals give depends on the context of the thread
        return self.unnamed(module) if module == "decimal" else ("library", module, *names)

    def again(self, value: Any) -> Any:
        """Return the number of a value that was met before; otherwise number it and return None."""
        number = self._numbers.setdefault(id(value), len(self._numbers))
        if number == len(self._kept):
            self._kept.append(value)
            return None
        return ("again", number)

    def apart(self, value: Any) -> Any:
        """Name a value with a copy of this walk, so that the numbers of this walk do not change."""
        # plain values are not numbered: no copy saves 10 us for each item of a set of pixels
        if type(value) in FLAT or (type(value) is tuple and _are_flat(value)):
            return self.name(value)
        walk = Walk(self.unnamed, self._describe, self.noted)
        walk._numbers, walk._kept = dict(self._numbers), list(self._kept)
        return walk.name(value)


def tokenize_value(value: Any) -> str:
    """Return a token of any value; equal content and code give equal tokens in every process.

    If a value has no reliable name, such as an open file, the token is different in each call.
    """
    walk = Walk(lambda thing: ("unique", uuid.uuid4().hex), describe_value, set())
    return _hash(_text((origins.own_version(), value), walk))


def strict_token(
    value: Any,
    describe: Callable[[Walk, Any], Any] | None = None,
    noted: set[Reference] | None = None,
) -> str:
    """Return a token like `tokenize_value`; raise an UnnamedError for what has no reliable name.

    It also depends on the versions of the libraries whose objects are used. `describe` is that of
    `Walk`. What the value refers to is added to `noted`.
    """

    def refuse(thing: Any) -> Any:
        raise UnnamedError(thing)

    walk = Walk(refuse, describe or describe_value, set())
    text = _text(value, walk)
    if noted is not None:
        noted |= walk.noted
    modules = sorted(name for kind, name in walk.noted if kind == "library")
    return _hash(f"{text}{[origins.library_state(module) for module in modules]}")


def identity_of(value: Any) -> Hashable:
    """Return a key for caches of this process, made from content and code like a token.

    An object without a reliable name is compared by identity, and the key keeps it alive.
    """
    found: dict[Identity, int] = {}

    def by_identity(thing: Any) -> Any:
        return ("identity", found.setdefault(Identity(thing), len(found)))

    return (_hash(_text(value, Walk(by_identity, describe_value, set()))), *found)


class Identity:
    """A hashable reference, which keeps any object alive and is equal only to references to it."""

    __slots__ = ("_thing",)

    def __init__(self, thing: Any) -> None:
        self._thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self._thing is other._thing

    def __hash__(self) -> int:
        return id(self._thing)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _text(value: Any, walk: Walk) -> str:
    """Return the name of a value as text, with the settings that its code reads."""
    try:
        return f"{walk.name(value)!r}{origins.settings_of(walk.noted)}"
    except UnnamedError:
        raise
    except Exception:  # noqa: BLE001  # objects of the user may raise anything, or are nested deep
        return repr(walk.unnamed(value))


def describe_value(walk: Walk, value: Any) -> Any:
    """Name a value that is not plain, by plain values that are equal for equal content."""
    kind = type(value)
    by_kind = _BY_TYPE.get(kind)
    if by_kind is not None:
        return by_kind(walk, value)
    if isinstance(value, type):
        return code.name_class(walk, value)
    if dataclasses.is_dataclass(value) and kind.__module__.startswith("udfdask."):
        return _name_own(walk, value)
    for base, by_base in _BY_BASE:
        if isinstance(value, base):
            return by_base(walk, value)
    # look at the type, because a Delayed seems to have any attribute
    if hasattr(kind, "__dask_graph__") and is_dask_collection(value):
        return ("collection", tokenize(value))
    return walk.again(value) or _name_instance(walk, value)


def _are_flat(values: Iterable[Any]) -> bool:
    """Return whether no value can contain references."""
    return all(type(v) in FLAT for v in values)


def _name_sequence(walk: Walk, value: Any) -> Any:
    # plain items cannot contain references: no number is needed, and equal copies get equal names
    again = None if _are_flat(value) else walk.again(value)
    return again or (type(value).__name__, [walk.name(v) for v in value])


def _name_dict(walk: Walk, value: Mapping[Any, Any]) -> Any:
    """Name a dictionary by its items in their order, because code may depend on the order."""
    if value is sys.modules:  # it differs in each process, and changes while it is read
        return walk.unnamed(value)
    again = None if _are_flat(value) and _are_flat(value.values()) else walk.again(value)
    return again or (type(value).__name__, [(walk.name(k), walk.name(v)) for k, v in value.items()])


def _name_set(walk: Walk, value: Any) -> Any:
    """Name a set by its items, sorted so that the order does not depend on their hashes."""
    again = None if _are_flat(value) else walk.again(value)
    return again or (type(value).__name__, sorted(repr(walk.apart(v)) for v in value))


def _name_own(walk: Walk, value: Any) -> Any:
    """Name a frozen dataclass of udfdask by its fields; its cached values depend only on them."""
    kind: Any = type(value)
    if hasattr(kind, "__dask_tokenize__"):
        return (kind.__qualname__, walk.name(value.__dask_tokenize__()))
    return (kind.__qualname__, [walk.name(getattr(value, name)) for name in _field_names(kind)])


@functools.lru_cache
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def _name_instance(walk: Walk, value: Any) -> Any:
    """Name an object by its class and by the data that pickle would write for it."""
    kind = type(value)
    if isinstance(value, os.PathLike):
        walk.noted.add(("text", str(os.fspath(value))))
        if isinstance(value, PurePath):  # pickle writes its parts, which are other paths
            return ("path", walk.name(kind), os.fspath(value))
    if kind is type(os.environ):  # its variables count if the code names them
        return walk.library("os", "environ")
    if found := origins.library_name(value):  # a callable such as NumPy's functions
        return walk.library(*found)
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
    if isinstance(reduced, str):  # only its name in the user's module, as for compiled functions
        return walk.unnamed(value)
    make, arguments, state, members, items, *rest = (*reduced, None, None, None, None)[:6]
    parts = (make, arguments, state, *rest)
    return (
        "object",
        walk.name(kind),
        [walk.name(part) for part in parts],
        [walk.name(v) for v in members or ()],
        [(walk.name(k), walk.name(v)) for k, v in items or ()],
    )


def _name_dtype(walk: Walk, dtype: np.dtype[Any]) -> Any:
    """Name a dtype; a text such as ``<i4`` describes simple ones completely."""
    simple = dtype.kind in "biufcmMSU" and dtype.metadata is None
    return ("dtype", dtype.str if simple else _name_instance(walk, dtype))


def _name_scalar(walk: Walk, scalar: np.generic) -> Any:
    """Name a NumPy scalar; long doubles contain unused bytes."""
    value = repr(scalar) if scalar.dtype.char in "gG" else np.asarray(scalar).tobytes()
    return ("scalar", _name_dtype(walk, scalar.dtype), value)


def _name_array(walk: Walk, array: np.ndarray[Any, Any]) -> Any:
    """Name an array by shape, dtype and values; for a subclass, also by its attributes."""
    plain = np.asarray(array) if type(array) is np.ndarray else array.view(np.ndarray)
    named = ("array", plain.shape, _name_dtype(walk, plain.dtype))
    simple = type(array) in (np.ndarray, np.memmap)
    has_objects = plain.dtype.hasobject
    if (not simple or has_objects) and (again := walk.again(array)):
        return again
    # dask hashes values in memory order: a square array and its transpose have the same token
    flat = np.ascontiguousarray(plain).reshape(-1)
    values: Any = "" if has_objects or not flat.nbytes else tokenize(flat.view("u1"))
    if has_objects:
        values = [walk.name(v) for v in flat.tolist()]
    more = (
        None
        if simple
        else (walk.name(type(array)), walk.name(dict(getattr(array, "__dict__", {}))))
    )
    return (*named, values, more)


def _by_parts(base: type, *names: str) -> tuple[type, Callable[[Walk, Any], Any]]:
    """Return a row of `_BY_BASE` for objects that are named by some of their attributes."""

    def name_parts(walk: Walk, value: Any) -> Any:
        if again := walk.again(value):
            return again
        more = None if type(value) is base else walk.name(dict(getattr(value, "__dict__", {})))
        parts = [walk.name(getattr(value, name, None)) for name in names]
        return (walk.name(type(value)), parts, more)

    return (base, name_parts)


_BY_TYPE: dict[type, Callable[[Walk, Any], Any]] = {
    list: _name_sequence,
    tuple: _name_sequence,
    dict: _name_dict,
    set: _name_set,
    frozenset: _name_set,
    types.FunctionType: code.name_function,
    types.CodeType: code.name_code,
    types.MethodType: lambda w, m: ("method", w.name(m.__func__), w.name(m.__self__)),
    types.BuiltinFunctionType: code.name_builtin,
    types.MappingProxyType: _name_dict,
    weakref.WeakKeyDictionary: _name_dict,
    type(functools.lru_cache(int)): code.name_cached,
    np.ufunc: lambda w, u: w.library(*found) if (found := origins.ufunc_name(u)) else w.unnamed(u),
}
_BY_BASE: tuple[tuple[type, Callable[[Walk, Any], Any]], ...] = (
    (types.ModuleType, code.name_module),
    (np.ndarray, _name_array),
    (np.generic, _name_scalar),
    (np.dtype, _name_dtype),
    _by_parts(staticmethod, "__func__"),
    _by_parts(classmethod, "__func__"),
    _by_parts(property, "fget", "fset", "fdel"),
    _by_parts(functools.cached_property, "func", "attrname"),
    # the values that np.vectorize caches after a call cannot be named
    _by_parts(np.vectorize, "pyfunc", "otypes", "signature", "cache", "excluded"),
)
