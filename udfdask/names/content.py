"""Walk through a value and all objects that it refers to, and name containers, objects and arrays.

Objects are named by content: by the data that pickle would write for them. An object that the walk
meets again is named by its number, in the order of the first meetings. So objects can refer to each
other or to themselves, and two objects with equal contents stay distinct.
"""

from __future__ import annotations

import copyreg
import dataclasses
import os
import sys
import threading
import types
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import PurePath
from typing import Any, Literal

import numpy as np
from dask.base import tokenize

from udfdask.names import origins
from udfdask.names.origins import library_name

PLAIN = frozenset({bool, float, complex, str, bytes, type(None), type(...)})
FLAT = PLAIN | {int}
"""Types of values that are their own names and cannot contain references."""
Reference = tuple[Literal["text", "library", "writes", "writes parameter"], str]
"""What a value refers to: a text, which can be the path of a file or the name of a setting; a
module of a library; a file that is opened for writing, by its path or by the parameter that has
the path."""

_STATELESS = (type(threading.Lock()), type(threading.RLock()))
_SIMPLE = frozenset("biufcmMSU")
"""Kinds of dtypes that a text such as ``<i4`` describes completely."""


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
        return ("library", module, *names)

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
        if type(value) in FLAT or (type(value) is tuple and all(type(v) in FLAT for v in value)):
            return self.name(value)
        walk = Walk(self.unnamed, self._describe, self.noted)
        walk._numbers, walk._kept = dict(self._numbers), list(self._kept)
        return walk.name(value)


def name_sequence(walk: Walk, value: Any) -> Any:
    """Name a list or tuple by its items."""
    kind = type(value).__name__
    # plain items cannot contain references: no number is needed, and equal copies get equal names
    if all(type(v) in FLAT for v in value):
        return (kind, [walk.name(v) for v in value])
    return walk.again(value) or (kind, [walk.name(v) for v in value])


def name_dict(walk: Walk, value: Mapping[Any, Any]) -> Any:
    """Name a dictionary by its items in their order, because code may depend on the order."""
    if value is sys.modules:  # it differs in each process, and changes while it is read
        return walk.unnamed(value)
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
    """Name a read-only view of a dictionary, or a weak dictionary."""
    return walk.again(proxy) or (type(proxy).__name__, walk.name(dict(proxy)))


def name_own(walk: Walk, value: Any) -> Any:
    """Name a frozen dataclass of udfdask by its fields; its cached values depend only on them."""
    kind: Any = type(value)
    if hasattr(kind, "__dask_tokenize__"):
        return (kind.__qualname__, walk.name(value.__dask_tokenize__()))
    return (kind.__qualname__, [walk.name(getattr(value, name)) for name in _field_names(kind)])


@lru_cache
def _field_names(kind: Any) -> tuple[str, ...]:
    """Return the names of the fields of a dataclass of udfdask, of which there are few."""
    return tuple(field.name for field in dataclasses.fields(kind))


def name_instance(walk: Walk, value: Any) -> Any:
    """Name an object by its class and by the data that pickle would write for it."""
    if again := walk.again(value):
        return again
    kind = type(value)
    if isinstance(value, PurePath):  # pickle writes its parts, which are other paths
        return ("path", walk.name(kind), walk.name(os.fspath(value)))
    if isinstance(value, os.PathLike):
        walk.noted.add(("text", str(os.fspath(value))))
    if kind is type(os.environ):  # its variables count if the code names them
        return walk.library("os", "environ")
    if found := library_name(value):  # a callable of another type, such as NumPy's functions
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
    if isinstance(reduced, str):  # a string is the name of the object in its module
        if not origins.is_found(value, reduced):  # such as a closure compiled by Cython
            return walk.unnamed(value)
        more = walk.name(getattr(value, "__dict__", None))
        return ("object", walk.name(kind), reduced, more, origins.compiled_file(value))
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
    if again := walk.again(value):
        return again
    kind = type(value)
    more = None if kind is base else walk.name(dict(getattr(value, "__dict__", {})))
    return (walk.name(kind), [walk.name(getattr(value, n, None)) for n in names], more)


def _digest(array: np.ndarray[Any, Any]) -> str:
    """Return a hash of the values in C order, independent of their order in memory.

    dask hashes values in memory order, so a square array and its transpose get the same token.
    """
    if not array.nbytes:
        return ""
    flat = np.ascontiguousarray(array).reshape(-1)
    return tokenize(flat.view("u1"))


def name_ufunc(walk: Walk, ufunc: np.ufunc) -> Any:
    """Name a ufunc of a library."""
    found = origins.ufunc_name(ufunc)
    return walk.unnamed(ufunc) if found is None else walk.library(*found)


def name_dtype(walk: Walk, dtype: np.dtype[Any]) -> Any:
    """Name a dtype."""
    simple = dtype.kind in _SIMPLE and dtype.metadata is None
    return ("dtype", dtype.str if simple else name_instance(walk, dtype))


def name_scalar(walk: Walk, scalar: np.generic) -> Any:
    """Name a NumPy scalar."""
    if scalar.dtype.char in "gG":  # long doubles contain unused bytes
        return ("scalar", name_dtype(walk, scalar.dtype), repr(scalar))
    return ("scalar", name_dtype(walk, scalar.dtype), walk.name(np.asarray(scalar).tobytes()))


def name_array(walk: Walk, array: np.ndarray[Any, Any]) -> Any:
    """Name an array by shape, dtype and values; for a subclass, also by its attributes."""
    plain = np.asarray(array) if type(array) is np.ndarray else array.view(np.ndarray)
    named = ("array", plain.shape, name_dtype(walk, plain.dtype))
    simple = type(array) in (np.ndarray, np.memmap)
    if simple and not plain.dtype.hasobject:
        return (*named, _digest(plain))
    if again := walk.again(array):
        return again
    if plain.dtype.hasobject:
        values = [walk.name(v) for v in plain.ravel().tolist()]
    else:
        values = [_digest(plain)]
    more = None if simple else walk.name(dict(getattr(array, "__dict__", {})))
    return (*named, values, walk.name(type(array)), more)
