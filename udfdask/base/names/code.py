"""Name functions, classes and modules by their code and by all objects that it refers to.

References are followed through the user's modules. Objects of a library are named by their name in
the library.
"""

from __future__ import annotations

import dis
import enum
import hashlib
import importlib
import importlib.util
import sys
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from udfdask.base.names import origins
from udfdask.base.names.origins import is_library_scope, library_name

if TYPE_CHECKING:
    from udfdask.base.names.naming import Walk

_MISSING = object()
_IGNORED = {"__dict__", "__weakref__", "__module__", "__firstlineno__", "__static_attributes__"}
# the code that was made from these contains their effect
_IGNORED |= {"__annotations__", "__annotate_func__", "__annotations_cache__", "__orig_bases__"}
_IGNORED |= {"__abstractmethods__", "__parameters__"}
# caches
_IGNORED |= {"_abc_impl", "__slotnames__", "_value2member_map_", "_unhashable_values_"}
_SLOT_TYPES = (types.MemberDescriptorType, types.GetSetDescriptorType)
_HEAP_TYPE = 1 << 9  # the flag of classes made by a class statement
_CONFIGURED = ("udfdask.udf", "udfdask.udfs.")
# the code that these functions use is known only when they are called
_UNFORESEEN = {("builtins", name) for name in ("compile", "eval", "exec", "__import__")}
_UNFORESEEN |= {("importlib", "import_module")}
_READERS = [("library", *names) for names in (("os",), ("os", "environ"), ("os", "getenv"))]
_READERS += [("library", *names) for names in (("dask", "config"), ("dask.config",))]
_READERS += [("library", "dask.config", "get")]
"""Names of what reads settings."""

_LOADS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_TEXT_METHODS = frozenset({"format", "format_map", "join", "lower", "replace", "upper"})
_NO_STEPS = frozenset({"CACHE", "EXTENDED_ARG", "NOP", "PRECALL", "PUSH_NULL", "RESUME"})

Steps = list[tuple[str, Any]]
"""Instructions of a code object: names and arguments."""


def name_class(walk: Walk, cls: type) -> Any:
    """Name a class by its body and its bases; a class of a library only by its name."""
    if found := library_name(cls):
        # users can set attributes of our own UDF classes, and replace their methods
        if not found[0].startswith(_CONFIGURED) or isinstance(cls, enum.EnumMeta):
            return walk.library(*found)
    elif not cls.__flags__ & _HEAP_TYPE:  # such as the type of functions, which has no module name
        return walk.library(cls.__module__, cls.__qualname__)
    if again := walk.again(cls):
        return again
    # docstrings of a library change only with its version
    ignored = _IGNORED | {"__doc__"} if found else _IGNORED
    body = [
        (name, ("own",) if found and _is_own_method(cls, name, value) else walk.name(value))
        for name, value in sorted(vars(cls).items())
        if name not in ignored and type(value) not in _SLOT_TYPES
    ]
    meta = None if type(cls) is type else walk.name(type(cls))
    return ("class", cls.__qualname__, meta, [walk.name(b) for b in cls.__bases__], body)


def _is_own_method(cls: type, name: str, value: Any) -> bool:
    """Return whether an attribute of a library's class is the method that its module defines."""
    # `library_name` would tell the same, in ten times as long for the 60 methods of a UDF
    return (
        type(value) is types.FunctionType
        and value.__qualname__ == f"{cls.__qualname__}.{name}"
        and value.__globals__ is vars(sys.modules[cls.__module__])
    )


def _named_before(walk: Walk, function: Any) -> Any:
    """Return the name of a library's function, or of one that was met before; otherwise None."""
    if found := library_name(function):
        return walk.unnamed(function) if found in _UNFORESEEN else walk.library(*found)
    return walk.again(function)


def name_function(walk: Walk, function: types.FunctionType) -> Any:
    """Name a function by its code, its bound values and all objects that it refers to."""
    if before := _named_before(walk, function):
        return before
    scope = function.__globals__
    return (
        "function",
        function.__name__,
        name_code(walk, function.__code__),
        walk.name(function.__defaults__),
        walk.name(function.__kwdefaults__),
        [_name_cell(walk, cell) for cell in function.__closure__ or ()],
        walk.name(dict(function.__dict__)) if function.__dict__ else None,
        # a closure made by a library refers to names of that library
        scope["__name__"] if is_library_scope(scope) else _name_references(walk, function),
    )


def _name_cell(walk: Walk, cell: types.CellType) -> Any:
    try:
        content = cell.cell_contents
    except ValueError:  # empty: its variable has no value yet
        return ("empty",)
    return walk.name(content)


def name_code(walk: Walk, code: types.CodeType) -> Any:
    """Name a code object."""
    walk.noted.update(("text", text) for text in references_of(code).texts)
    return ("code", code_digest(code))


def _name_references(walk: Walk, function: types.FunctionType) -> Any:
    """Name the objects that a user's function refers to by name."""
    references = references_of(function.__code__)
    scope: Mapping[str, Any] = function.__globals__
    untyped: Any = function  # mypy does not know the attribute
    builtins: Mapping[str, Any] = untyped.__builtins__
    found = []
    for chain in sorted(references.chains):
        first, *rest = chain
        value = scope.get(first, builtins.get(first, _MISSING))
        if value is globals:  # the function may read any global name
            found.append((chain, _name_namespace(walk, scope)))
        else:
            found.append((chain, _name_reached(walk, value, rest)))
    package = scope.get("__package__") or scope.get("__name__", "").rpartition(".")[0]
    imported = [_name_import(walk, package, *each) for each in sorted(references.imports)]
    used = [name for _, name in found] + [name for names in imported for name in names]
    if references.makes_texts and any(name in _READERS for name in used):
        return walk.unnamed(function)  # it may make the name of a setting while it runs
    return (found, imported)


def _name_reached(walk: Walk, value: Any, attributes: Iterable[str]) -> Any:
    """Follow attributes through modules, and name the object that they lead to."""
    for attribute in attributes:
        if not isinstance(value, types.ModuleType):
            break
        names = vars(value)
        if attribute in names:
            value = names[attribute]
        elif is_library_scope(names):
            # it may be loaded at its first use, as `scipy.ndimage`: the name must not change then
            try:
                value = getattr(value, attribute)
            except Exception:  # noqa: BLE001  # any error of a library that is loaded
                return walk.library(value.__name__, attribute)
        elif type(value) is not types.ModuleType:  # its class may compute attributes
            return walk.unnamed(value)
        else:
            return ("missing", attribute, walk.name(names.get("__getattr__")))
    return ("missing",) if value is _MISSING else walk.name(value)


def _name_import(
    walk: Walk, package: str, level: int, name: str, taken: tuple[str, ...]
) -> list[Any]:
    """Name the objects that an import statement inside a function imports."""
    try:
        full = importlib.util.resolve_name("." * level + name, package) if level else name
    except ImportError:
        return [("missing", name)]
    library = origins.will_be_library(full)
    if library is None:
        return [("missing", full)]
    # Do not import a library only for its name: it may be large. The name is the same if it is
    # loaded, because the call itself loads it. Modules of Python are small, and have values.
    if library and full.partition(".")[0] not in sys.stdlib_module_names:
        return [walk.library(full, *taken)]
    try:
        module = importlib.import_module(full)
        for each in taken:
            if not library and not hasattr(module, each):
                importlib.import_module(f"{full}.{each}")
    except Exception:  # noqa: BLE001  # the user's module can raise anything
        return [walk.unnamed(full)]
    if not taken:  # attributes that are read through local variables are not followed
        return [walk.name(sys.modules[full.partition(".")[0]]), walk.name(module)]
    return [_name_reached(walk, module, (each,)) for each in taken]


def name_module(walk: Walk, module: types.ModuleType) -> Any:
    """Name a library module by its name, and a user's module by all its contents."""
    if is_library_scope(vars(module)):
        return walk.library(module.__name__)
    return ("module", module.__name__, _name_namespace(walk, vars(module)))


def _name_namespace(walk: Walk, names: Mapping[str, Any]) -> Any:
    return walk.again(names) or [
        (name, walk.name(value))
        for name, value in sorted(names.items())
        if name == "__getattr__" or not (name.startswith("__") and name.endswith("__"))
    ]


def name_builtin(walk: Walk, function: types.BuiltinFunctionType) -> Any:
    """Name a compiled function of a library, or one that is bound to an object."""
    if library_name(function):
        return _named_before(walk, function)
    owner = function.__self__
    if owner is None or isinstance(owner, types.ModuleType):
        return walk.unnamed(function)  # the user's, from a compiled module
    return ("method", function.__name__, walk.name(owner))


def name_cached(walk: Walk, function: Any) -> Any:
    """Name a function that is wrapped by functools.lru_cache."""
    if before := _named_before(walk, function):
        return before
    options = list(function.cache_parameters().items())
    # the other attributes are copies of the function's attributes
    more = {k: v for k, v in vars(function).items() if not k.startswith(("__", "cache_"))}
    return ("cached", walk.name(function.__wrapped__), options, walk.name(more))


@dataclass(frozen=True, slots=True)
class References:
    """The names and texts in a code object and in its inner code objects."""

    chains: set[tuple[str, ...]] = field(default_factory=set)
    """Each global name with the attributes that are read directly after it: `np.linalg.norm`."""
    imports: set[tuple[int, str, tuple[str, ...]]] = field(default_factory=set)
    """Each import: level of a relative import, module, imported names."""
    texts: set[str] = field(default_factory=set)
    """Each constant text."""
    makes_texts: bool = False
    """Whether texts are put together, so that there can be others than constants."""


@lru_cache(maxsize=4096)
def references_of(code: types.CodeType) -> References:
    """Return the names and texts in a code object."""
    steps: Steps = [
        (each.opname, each.argrepr if each.opname == "BINARY_OP" else each.argval)
        for each in dis.get_instructions(code)
        if each.opname not in _NO_STEPS
    ]
    inner = [references_of(each) for each in code.co_consts if isinstance(each, types.CodeType)]
    found = References(
        makes_texts=any(_makes_text(steps, k) for k in range(len(steps)))
        or any(each.makes_texts for each in inner),
    )
    chain: tuple[str, ...] = ()
    for k, (name, value) in enumerate(steps):
        if chain and name in _ATTRIBUTES:
            chain = (*chain, value)
            continue
        if chain:
            found.chains.add(chain)
        chain = (value,) if name in _LOADS else ()
        if name == "IMPORT_NAME":
            level, taken = (argument for _, argument in steps[k - 2 : k])
            found.imports.add((level or 0, value, tuple(taken or ())))
    for constant in code.co_consts:
        for each in constant if isinstance(constant, tuple) else (constant,):
            if isinstance(each, str):
                found.texts.add(each)
    for each in inner:
        for kind in ("chains", "imports", "texts"):
            getattr(found, kind).update(getattr(each, kind))
    return found


def _makes_text(steps: Steps, k: int) -> bool:
    """Return whether instruction number k may put a text together."""
    name, value = steps[k]
    if name in _ATTRIBUTES:
        return value in _TEXT_METHODS
    if name == "BINARY_OP" and value in ("+", "+=", "%"):
        for before, operand in reversed(steps[:k]):
            if before == "LOAD_CONST" and isinstance(operand, str):
                return True
            if not before.startswith("LOAD_"):
                return False
    return name.startswith(("FORMAT_", "BUILD_STRING"))


@lru_cache(maxsize=4096)
def code_digest(code: types.CodeType) -> str:
    """Return a hash of a code object, without its file name and line numbers."""
    parts = (
        code.co_code,
        [_constant(value) for value in code.co_consts],
        (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars),
        (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags),
        code.co_exceptiontable,
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _constant(value: Any) -> Any:
    """Return a constant in a form whose text differs for all different constants."""
    if isinstance(value, types.CodeType):
        return ("code", code_digest(value))
    if isinstance(value, tuple):
        return ("tuple", [_constant(v) for v in value])
    if isinstance(value, frozenset):  # its order depends on the hashes of strings
        return ("frozenset", sorted(repr(_constant(v)) for v in value))
    if isinstance(value, slice):
        return ("slice", [_constant(v) for v in (value.start, value.stop, value.step)])
    if type(value) is int:
        return ("int", hex(value))  # Python limits the number of decimal digits
    if value is None or value is ... or type(value) in (bool, float, complex, str, bytes):
        return value
    raise TypeError(f"a constant of type {type(value)}")  # no compiler makes it
