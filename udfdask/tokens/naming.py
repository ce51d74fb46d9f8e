"""Turns any value into plain ones that are equal for equal content and code.

Whatever is met a second time in one value is named by its number, counted from the first: objects
that refer to each other, or to themselves, come to an end, and two of the same name are told apart.
"""

from __future__ import annotations

import copyreg
import dataclasses
import enum
import functools
import hashlib
import importlib
import importlib.util
import sys
import threading
import types
import uuid
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from dask.base import is_dask_collection, tokenize

from udfdask.tokens import origins
from udfdask.tokens.arrays import array_digest, dtype_text
from udfdask.tokens.origins import is_library_module, is_library_scope, library_name
from udfdask.tokens.references import code_digest, references_of

_PLAIN = frozenset({bool, float, complex, str, bytes, type(None), type(...)})
_FLAT = _PLAIN | {int}
_MISSING = object()


def tokenize_value(value: Any) -> str:
    """Return a token of any value, equal for equal content and code in every process.

    What cannot be named for certain, such as an open file, makes the token unique to the call.
    """
    value = (origins.own_version(), value)
    return _digest(value, lambda thing: ("unique", uuid.uuid4().hex))


def identity_of(value: Any) -> Hashable:
    """Return a key for caches of this process: content and code, as in a token.

    What cannot be named for certain is known by its identity, and kept alive by the key.
    """
    found: dict[Identity, int] = {}

    def by_identity(thing: Any) -> Any:
        return ("identity", found.setdefault(Identity(thing), len(found)))

    return (_digest(value, by_identity), *found)


class Identity:
    """Equal to another only if both are about the same object, which it keeps alive."""

    __slots__ = ("_thing",)

    def __init__(self, thing: Any) -> None:
        self._thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self._thing is other._thing

    def __hash__(self) -> int:
        return id(self._thing)


def _digest(value: Any, unnamed: Callable[[Any], Any]) -> str:
    """Return a hash of a value; `unnamed` gives what stands for an object without a name."""
    try:
        text = repr(_Walk(unnamed).name(value))
    except RecursionError:  # nested a few hundred levels deep
        text = repr(unnamed(value))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class _Walk:
    """A walk through a value and all that it refers to; `numbers` are those met, by id."""

    def __init__(self, unnamed: Callable[[Any], Any]) -> None:
        self.unnamed = unnamed
        self.numbers: dict[int, int] = {}
        # an id that is free again would be taken for the object that had it
        self.kept: list[Any] = []

    def name(self, value: Any) -> Any:
        """Return a value as nested tuples and lists of plain values."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is int:
            # most are small, and the decimal digits of large ones are limited in number
            return value if -1 << 63 < value < 1 << 63 else ("int", hex(value))
        by_kind = _BY_TYPE.get(kind)
        if by_kind is not None:
            return by_kind(self, value)
        if isinstance(value, type):
            return self._class(value)
        for base, by_base in _BY_BASE:
            if isinstance(value, base):
                return by_base(self, value)
        # asked of the type, since a Delayed claims to have any attribute
        if hasattr(kind, "__dask_graph__") and is_dask_collection(value):
            return ("collection", tokenize(value))
        if dataclasses.is_dataclass(value) and kind.__module__.startswith("udfdask."):
            return self._own(value)
        return self._instance(value)

    def _again(self, value: Any) -> Any:
        """Return the number of what has been met before; else give it one and return None."""
        number = self.numbers.setdefault(id(value), len(self.numbers))
        if number == len(self.kept):
            self.kept.append(value)
            return None
        return ("again", number)

    def _sequence(self, value: Any) -> Any:
        """Return the members of a list or tuple."""
        kind = type(value).__name__
        # nothing in it can lead back: it is not numbered, and equal copies have equal names
        if all(type(v) in _FLAT for v in value):
            return (kind, [self.name(v) for v in value])
        return self._again(value) or (kind, [self.name(v) for v in value])

    def _dict(self, value: Mapping[Any, Any]) -> Any:
        """Return the items of a dictionary, in their order, which code may go by."""
        flat = all(type(k) in _FLAT and type(v) in _FLAT for k, v in value.items())
        again = None if flat else self._again(value)
        return again or ("dict", [(self.name(k), self.name(v)) for k, v in value.items()])

    def _set(self, value: Any) -> Any:
        """Return the members of a set in an order that does not follow their hashes."""
        kind = type(value).__name__
        if all(type(v) in _FLAT for v in value):
            return (kind, sorted(repr(self.name(v)) for v in value))
        again = self._again(value)
        return again or (kind, sorted(repr(self._apart(v)) for v in value))

    def _apart(self, value: Any) -> Any:
        """Return a value by a walk that goes on from here, and leaves no numbers behind."""
        # nothing in it can be numbered: saves 10 us for each pixel of a set of them
        if type(value) in _FLAT or (type(value) is tuple and all(type(v) in _FLAT for v in value)):
            return self.name(value)
        walk = _Walk(self.unnamed)
        walk.numbers, walk.kept = dict(self.numbers), list(self.kept)
        return walk.name(value)

    def _class(self, cls: type) -> Any:
        """Return the body of a class and its bases; a library's by name, if its code is fixed."""
        if found := library_name(cls):
            # attributes of our own UDFs may be assigned, and their methods replaced
            if not found[0].startswith(_CONFIGURED):
                return ("library", *found)
        elif not cls.__flags__ & _HEAP_TYPE:  # such as the type of functions, found under no name
            return ("library", cls.__module__, cls.__qualname__)
        again = self._again(cls)
        if again:
            return again
        body = [
            (name, self.name(value))
            for name, value in sorted(vars(cls).items())
            if name not in _IGNORED and not isinstance(value, _SLOT_TYPES)
        ]
        meta = None if type(cls) is type else self.name(type(cls))
        return ("class", cls.__qualname__, meta, [self.name(b) for b in cls.__bases__], body)

    def _function(self, function: types.FunctionType) -> Any:
        """Return the code of a function with all that it carries and refers to."""
        found = library_name(function)
        if found:
            return self.unnamed(function) if found in _UNFORESEEN else ("library", *found)
        again = self._again(function)
        if again:
            return again
        scope = function.__globals__
        return (
            "function",
            function.__name__,
            self._code(function.__code__),
            self.name(function.__defaults__),
            self.name(function.__kwdefaults__),
            [self._cell(cell) for cell in function.__closure__ or ()],
            self.name(dict(function.__dict__)) if function.__dict__ else None,
            # a closure that a library made refers to the names of that library
            scope["__name__"] if is_library_scope(scope) else self._references(function),
        )

    def _cell(self, cell: types.CellType) -> Any:
        """Return what a closure cell holds."""
        try:
            content = cell.cell_contents
        except ValueError:  # empty: its variable is still to be assigned
            return ("empty",)
        return self.name(content)

    def _code(self, code: types.CodeType) -> Any:
        """Return a code object."""
        return ("code", code_digest(code) or self.unnamed(code))

    def _references(self, function: types.FunctionType) -> Any:
        """Return what a function of the user's refers to by name."""
        references = references_of(function.__code__)
        scope: Mapping[str, Any] = function.__globals__
        builtins: Mapping[str, Any] = function.__builtins__  # type: ignore[attr-defined]
        found = []
        for chain in references.chains:
            first, *rest = chain
            value = scope.get(first, builtins.get(first, _MISSING))
            if value is globals:  # any of them, by a name that cannot be told
                found.append((chain, self._namespace(scope)))
            else:
                found.append((chain, self._reached(value, rest)))
        package = scope.get("__package__") or scope.get("__name__", "").rpartition(".")[0]
        return (found, [self._import(package, *each) for each in references.imports])

    def _reached(self, value: Any, attributes: Iterable[str]) -> Any:
        """Return what the attributes lead to, as far as they lead through modules."""
        for attribute in attributes:
            if not isinstance(value, types.ModuleType):
                break
            names = vars(value)
            if attribute in names:
                value = names[attribute]
            elif is_library_module(value):  # perhaps loaded when it is first read
                return ("library", value.__name__, attribute)
            elif type(value) is not types.ModuleType:  # its class may make attributes
                return self.unnamed(value)
            else:
                return ("missing", attribute, self.name(names.get("__getattr__")))
        return ("missing",) if value is _MISSING else self.name(value)

    def _import(self, package: str, level: int, name: str, taken: tuple[str, ...]) -> Any:
        """Return what an import statement inside a function brings."""
        try:
            full = importlib.util.resolve_name("." * level + name, package) if level else name
        except ImportError:
            return ("missing", name)
        library = origins.will_be_library(full)
        if library is None:
            return ("missing", full)
        try:
            # a library that has not been loaded may be large, and its name says enough
            module = sys.modules.get(full) if library else importlib.import_module(full)
            if module is None:
                return ("library", full)
            if not taken:  # which attributes are read is not followed through local variables
                top = importlib.import_module(full.partition(".")[0])
                return [self.name(top), self.name(module)]
            for each in taken:
                if not library and not hasattr(module, each):
                    importlib.import_module(f"{full}.{each}")
        except Exception:  # noqa: BLE001  # whatever the user's module raises
            return self.unnamed(full)
        return [self._reached(module, (each,)) for each in taken]

    def _module(self, module: types.ModuleType) -> Any:
        """Return a library by name; of a module of the user's all that is in it."""
        if is_library_module(module):
            return ("library", module.__name__)
        return ("module", module.__name__, self._namespace(vars(module)))

    def _namespace(self, names: Mapping[str, Any]) -> Any:
        """Return all names of a module with their values."""
        return self._again(names) or [
            (name, self.name(value))
            for name, value in sorted(names.items())
            if name == "__getattr__" or not (name.startswith("__") and name.endswith("__"))
        ]

    def _method(self, method: types.MethodType) -> Any:
        """Return a bound method."""
        return ("method", self.name(method.__func__), self.name(method.__self__))

    def _builtin(self, function: types.BuiltinFunctionType) -> Any:
        """Return a function that is not written in Python; a bound one with its object."""
        found = library_name(function)
        if found is not None:
            return self.unnamed(function) if found in _UNFORESEEN else ("library", *found)
        owner = function.__self__
        if owner is not None and not isinstance(owner, types.ModuleType):
            return ("method", function.__name__, self.name(owner))
        return ("compiled", function.__qualname__, self._file(function) or self.unnamed(function))

    def _file(self, value: Any) -> str | None:
        """Return a hash of the user's compiled module that something is from."""
        file = origins.extension_file(value)
        return None if file is None else origins.file_digest(*file)

    def _ufunc(self, ufunc: np.ufunc) -> Any:
        """Return a ufunc of a library by name."""
        found = origins.ufunc_name(ufunc)
        return self.unnamed(ufunc) if found is None else ("library", *found)

    def _dtype(self, dtype: np.dtype[Any]) -> Any:
        """Return a dtype."""
        return ("dtype", dtype_text(dtype) or self._instance(dtype))

    def _scalar(self, scalar: np.generic) -> Any:
        """Return a scalar of NumPy's."""
        if scalar.dtype.char in "gG":  # long doubles have bytes that hold nothing
            return ("scalar", self._dtype(scalar.dtype), repr(scalar))
        return ("scalar", self._dtype(scalar.dtype), self.name(np.asarray(scalar).tobytes()))

    def _array(self, array: np.ndarray[Any, Any]) -> Any:
        """Return an array by shape, dtype and values; of another class with its attributes."""
        plain = np.asarray(array) if type(array) is np.ndarray else array.view(np.ndarray)
        named = ("array", plain.shape, self._dtype(plain.dtype))
        simple = type(array) in (np.ndarray, np.memmap)
        if simple and not plain.dtype.hasobject:
            return (*named, array_digest(plain))
        again = self._again(array)
        if again:
            return again
        if plain.dtype.hasobject:
            values = [self.name(v) for v in plain.ravel().tolist()]
        else:
            values = [array_digest(plain)]
        more = None if simple else self.name(dict(getattr(array, "__dict__", {})))
        return (*named, values, self.name(type(array)), more)

    def _member(self, member: enum.Enum) -> Any:
        """Return a member of an Enum; what its class keeps about it has a leading underscore."""
        library = library_name(type(member))
        if library:
            return ("library", *library, member.name)
        more = {k: v for k, v in vars(member).items() if not k.startswith("_")}
        return self._again(member) or (
            "member",
            self.name(type(member)),
            member._name_,
            self.name(member._value_),
            self.name(more),
        )

    def _own(self, value: Any) -> Any:
        """Return a frozen value of udfdask's by its fields: what it caches follows from them."""
        fields = [(f.name, self.name(getattr(value, f.name))) for f in dataclasses.fields(value)]
        return (type(value).__qualname__, fields)

    def _instance(self, value: Any) -> Any:
        """Return an object as its class and what pickle would send of it."""
        again = self._again(value)
        if again:
            return again
        kind = type(value)
        if found := library_name(value):  # a function of another type, as NumPy's with overrides
            return ("library", *found)
        if kind in _STATELESS:
            return ("instance", kind.__qualname__)
        python = getattr(value, "py_func", None) if kind.__module__.startswith("numba.") else None
        if isinstance(python, types.FunctionType):  # compiled; what it is pickled with is random
            options = getattr(value, "targetoptions", None)
            return (kind.__qualname__, self.name(python), self.name(options))
        reduce = copyreg.dispatch_table.get(kind)
        try:
            reduced = value.__reduce_ex__(4) if reduce is None else reduce(value)
        except Exception:  # noqa: BLE001  # it cannot be sent, or the user's code for that fails
            if hasattr(kind, "__dask_tokenize__"):
                return ("object", self.name(kind), self.name(value.__dask_tokenize__()))
            return self.unnamed(value)
        if isinstance(reduced, str):  # it is what its module has under that name
            if not origins.is_found(value, reduced):  # as a closure that Cython compiled
                return self.unnamed(value)
            more = self.name(getattr(value, "__dict__", None))
            return ("object", self.name(kind), reduced, more, self._file(value))
        make, arguments, state, members, items, *rest = (*reduced, None, None, None, None)[:6]
        return (
            "object",
            self.name(kind),
            self.name(make),
            self.name(arguments),
            self.name(state),
            [self.name(v) for v in members or ()],
            [(self.name(k), self.name(v)) for k, v in items or ()],
            [self.name(v) for v in rest],
        )

    def _cached(self, function: Any) -> Any:
        """Return a function behind functools.lru_cache."""
        found = library_name(function)
        if found:
            return ("library", *found)
        again = self._again(function)
        if again:
            return again
        options = list(function.cache_parameters().items())
        # the other attributes are copies of those of the function
        more = {
            k: v for k, v in vars(function).items() if k[:2] != "__" and k != "cache_parameters"
        }
        return ("cached", self.name(function.__wrapped__), options, self.name(more))

    def _proxy(self, proxy: Mapping[Any, Any]) -> Any:
        """Return a read-only or weak view of a dictionary."""
        return self._again(proxy) or (type(proxy).__name__, self.name(dict(proxy)))

    def _parts(self, value: Any, base: type, names: Iterable[str]) -> Any:
        """Return an object that cannot be pickled by its attributes that matter."""
        again = self._again(value)
        if again:
            return again
        kind = type(value)
        more = None if kind is base else self.name(dict(getattr(value, "__dict__", {})))
        return (self.name(kind), [self.name(getattr(value, n, None)) for n in names], more)


def _by_parts(base: type, *names: str) -> tuple[type, Callable[[_Walk, Any], Any]]:
    """Return a row of `_BY_BASE` for objects that some of their attributes describe."""
    return (base, lambda walk, value: walk._parts(value, base, names))


_BY_TYPE: dict[type, Callable[[_Walk, Any], Any]] = {
    list: _Walk._sequence,
    tuple: _Walk._sequence,
    dict: _Walk._dict,
    set: _Walk._set,
    frozenset: _Walk._set,
    types.FunctionType: _Walk._function,
    types.CodeType: _Walk._code,
    types.MethodType: _Walk._method,
    types.BuiltinFunctionType: _Walk._builtin,
    types.MappingProxyType: _Walk._proxy,
    type(functools.lru_cache(int)): _Walk._cached,
    np.ufunc: _Walk._ufunc,
}
_BY_BASE: tuple[tuple[type, Callable[[_Walk, Any], Any]], ...] = (
    (types.ModuleType, _Walk._module),
    (np.ndarray, _Walk._array),
    (np.generic, _Walk._scalar),
    (np.dtype, _Walk._dtype),
    (enum.Enum, _Walk._member),
    _by_parts(staticmethod, "__func__"),
    _by_parts(classmethod, "__func__"),
    _by_parts(property, "fget", "fset", "fdel"),
    _by_parts(functools.cached_property, "func", "attrname"),
    # what it keeps after a call cannot be named
    _by_parts(np.vectorize, "pyfunc", "otypes", "signature", "cache", "excluded"),
    (weakref.WeakKeyDictionary, _Walk._proxy),
    (weakref.WeakValueDictionary, _Walk._proxy),
)
_IGNORED = frozenset(
    {
        "__dict__",
        "__weakref__",
        "__module__",
        "__firstlineno__",
        "__static_attributes__",
        # what they decide is in the code that was made from them
        "__annotations__",
        "__annotate_func__",
        "__annotations_cache__",
        "__abstractmethods__",
        "__parameters__",
        "__orig_bases__",
        # caches
        "_abc_impl",
        "__slotnames__",
        "_value2member_map_",
        "_unhashable_values_",
    }
)
_SLOT_TYPES = (types.MemberDescriptorType, types.GetSetDescriptorType)
_STATELESS = (type(threading.Lock()), type(threading.RLock()))
_HEAP_TYPE = 1 << 9
_CONFIGURED = ("udfdask.udf", "udfdask.udfs.")
# what they run or reach is known only when they are called
_UNFORESEEN = frozenset(
    {
        ("builtins", "compile"),
        ("builtins", "eval"),
        ("builtins", "exec"),
        ("builtins", "globals"),
        ("builtins", "__import__"),
        ("importlib", "import_module"),
    }
)
