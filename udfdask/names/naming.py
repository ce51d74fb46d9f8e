"""Compute tokens of values: choose the naming function for each type, and hash the names."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import types
import uuid
import weakref
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import dask.config
import numpy as np
from dask.base import is_dask_collection, tokenize

from udfdask.names import code, content, origins
from udfdask.names.content import Reference, Walk
from udfdask.names.origins import own_version

_MISSING = object()


def tokenize_value(value: Any) -> str:
    """Return a token of any value; equal content and code give equal tokens in every process.

    If a value has no reliable name, such as an open file, the token is different in each call.
    """
    value = (own_version(), value)
    return _digest(value, lambda thing: ("unique", uuid.uuid4().hex))


class UnnamedError(Exception):
    """A value contains an object that has no reliable name."""

    def __init__(self, thing: Any) -> None:
        super().__init__(thing)
        self.thing = thing


def strict_token(
    value: Any,
    describe: Callable[[Walk, Any], Any] | None = None,
    noted: set[Reference] | None = None,
) -> str:
    """Return a token like `tokenize_value`; raise an UnnamedError for what has no reliable name.

    It also depends on the versions of the libraries whose objects are used. `describe` names values
    that are not plain; by default `describe_value`, which it may call. What the value refers to is
    added to `noted`.
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

    return (_digest(value, by_identity), *found)


class Identity:
    """A hashable reference, which keeps any object alive and is equal only to references to it."""

    __slots__ = ("_thing",)

    def __init__(self, thing: Any) -> None:
        self._thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self._thing is other._thing

    def __hash__(self) -> int:
        return id(self._thing)


def _digest(value: Any, unnamed: Callable[[Any], Any]) -> str:
    """Return a hash of a value; `unnamed` returns a substitute for objects without a name."""
    return _hash(_text(value, Walk(unnamed, describe_value, set())))


def _hash(text: str) -> str:
    """Return a hash of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _text(value: Any, walk: Walk) -> str:
    """Return the name of a value as text, with the settings that its code reads."""
    try:
        return f"{walk.name(value)!r}{settings_of(walk.noted)}"
    except UnnamedError:
        raise
    except Exception:  # noqa: BLE001  # objects of the user may raise anything, or are nested deep
        return repr(walk.unnamed(value))


def settings_of(noted: Iterable[Reference]) -> list[tuple[str, Any]]:
    """Return the environment variables and dask's settings that code names, and their values.

    They count only if the code uses `os` or `dask.config`. Others never count, so that a run goes
    on in another process, whose environment has other variables. How decimals are rounded counts
    if the code uses `decimal`.
    """
    used = {name for kind, name in noted if kind == "library"}
    texts = sorted(text for kind, text in noted if kind == "text") if used else []
    found: list[tuple[str, Any]] = []
    if "os" in used:
        found += [(text, os.environ[text]) for text in texts if text in os.environ]
    if not used.isdisjoint({"dask", "dask.config"}):
        settings = ((text, dask.config.get(text, _MISSING)) for text in texts)
        found += [(text, value) for text, value in settings if value is not _MISSING]
    if "decimal" in used:
        import decimal  # has been imported by the code

        # in this thread and in new ones; its flags only tell what has been computed
        for context in (decimal.getcontext(), decimal.DefaultContext):
            plain = context.copy()
            plain.clear_flags()
            found.append(("decimal", repr(plain)))
    return found


def describe_value(walk: Walk, value: Any) -> Any:
    """Name a value that is not plain, by plain values that are equal for equal content."""
    kind = type(value)
    by_kind = _BY_TYPE.get(kind)
    if by_kind is not None:
        return by_kind(walk, value)
    if isinstance(value, type):
        return code.name_class(walk, value)
    if dataclasses.is_dataclass(value) and kind.__module__.startswith("udfdask."):
        return content.name_own(walk, value)
    for base, by_base in _BY_BASE:
        if isinstance(value, base):
            return by_base(walk, value)
    # look at the type, because a Delayed seems to have any attribute
    if hasattr(kind, "__dask_graph__") and is_dask_collection(value):
        return ("collection", tokenize(value))
    return content.name_instance(walk, value)


def _by_parts(base: type, *names: str) -> tuple[type, Callable[[Walk, Any], Any]]:
    """Return a row of `_BY_BASE` for objects that are named by some of their attributes."""
    return (base, lambda walk, value: content.name_parts(walk, value, base, names))


_BY_TYPE: dict[type, Callable[[Walk, Any], Any]] = {
    list: content.name_sequence,
    tuple: content.name_sequence,
    dict: content.name_dict,
    set: content.name_set,
    frozenset: content.name_set,
    types.FunctionType: code.name_function,
    types.CodeType: code.name_code,
    types.MethodType: code.name_method,
    types.BuiltinFunctionType: code.name_builtin,
    types.MappingProxyType: content.name_proxy,
    weakref.WeakKeyDictionary: content.name_proxy,
    type(functools.lru_cache(int)): code.name_cached,
    np.ufunc: content.name_ufunc,
}
_BY_BASE: tuple[tuple[type, Callable[[Walk, Any], Any]], ...] = (
    (types.ModuleType, code.name_module),
    (np.ndarray, content.name_array),
    (np.generic, content.name_scalar),
    (np.dtype, content.name_dtype),
    _by_parts(staticmethod, "__func__"),
    _by_parts(classmethod, "__func__"),
    _by_parts(property, "fget", "fset", "fdel"),
    _by_parts(functools.cached_property, "func", "attrname"),
    # the values that np.vectorize caches after a call cannot be named
    _by_parts(np.vectorize, "pyfunc", "otypes", "signature", "cache", "excluded"),
)
