"""Functions, classes and modules by their code and by whatever that refers to.

It is followed through the user's modules. What belongs to a library is known by its name there.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from collections.abc import Iterable, Mapping
from typing import Any

from udfdask.tokens import origins
from udfdask.tokens.origins import is_library_module, is_library_scope, library_name
from udfdask.tokens.references import code_digest, references_of
from udfdask.tokens.walk import Walk

_MISSING = object()
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
_HEAP_TYPE = 1 << 9  # the flag of classes that a class statement makes
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


def name_class(walk: Walk, cls: type) -> Any:
    """Return the body of a class and its bases; a library's by name, if its code is fixed."""
    if found := library_name(cls):
        # attributes of our own UDFs may be assigned, and their methods replaced
        if not found[0].startswith(_CONFIGURED):
            return ("library", *found)
    elif not cls.__flags__ & _HEAP_TYPE:  # such as the type of functions, found under no name
        return ("library", cls.__module__, cls.__qualname__)
    again = walk.again(cls)
    if again:
        return again
    body = [
        (name, walk.name(value))
        for name, value in sorted(vars(cls).items())
        if name not in _IGNORED and not isinstance(value, _SLOT_TYPES)
    ]
    meta = None if type(cls) is type else walk.name(type(cls))
    return ("class", cls.__qualname__, meta, [walk.name(b) for b in cls.__bases__], body)


def name_function(walk: Walk, function: types.FunctionType) -> Any:
    """Return the code of a function with all that it carries and refers to."""
    found = library_name(function)
    if found:
        return walk.unnamed(function) if found in _UNFORESEEN else ("library", *found)
    again = walk.again(function)
    if again:
        return again
    scope = function.__globals__
    return (
        "function",
        function.__name__,
        name_code(walk, function.__code__),
        walk.name(function.__defaults__),
        walk.name(function.__kwdefaults__),
        [_name_cell(walk, cell) for cell in function.__closure__ or ()],
        walk.name(dict(function.__dict__)) if function.__dict__ else None,
        # a closure that a library made refers to the names of that library
        scope["__name__"] if is_library_scope(scope) else _name_references(walk, function),
    )


def _name_cell(walk: Walk, cell: types.CellType) -> Any:
    """Return what a closure cell holds."""
    try:
        content = cell.cell_contents
    except ValueError:  # empty: its variable is still to be assigned
        return ("empty",)
    return walk.name(content)


def name_code(walk: Walk, code: types.CodeType) -> Any:
    """Return a code object."""
    return ("code", code_digest(code) or walk.unnamed(code))


def _name_references(walk: Walk, function: types.FunctionType) -> Any:
    """Return what a function of the user's refers to by name."""
    references = references_of(function.__code__)
    scope: Mapping[str, Any] = function.__globals__
    untyped: Any = function  # mypy does not know the attribute
    builtins: Mapping[str, Any] = untyped.__builtins__
    found = []
    for chain in references.chains:
        first, *rest = chain
        value = scope.get(first, builtins.get(first, _MISSING))
        if value is globals:  # any of them, by a name that cannot be told
            found.append((chain, _name_namespace(walk, scope)))
        else:
            found.append((chain, _name_reached(walk, value, rest)))
    package = scope.get("__package__") or scope.get("__name__", "").rpartition(".")[0]
    return (found, [_name_import(walk, package, *each) for each in references.imports])


def _name_reached(walk: Walk, value: Any, attributes: Iterable[str]) -> Any:
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
            return walk.unnamed(value)
        else:
            return ("missing", attribute, walk.name(names.get("__getattr__")))
    return ("missing",) if value is _MISSING else walk.name(value)


def _name_import(walk: Walk, package: str, level: int, name: str, taken: tuple[str, ...]) -> Any:
    """Return what an import statement inside a function brings."""
    try:
        full = importlib.util.resolve_name("." * level + name, package) if level else name
    except ImportError:
        return ("missing", name)
    library = origins.will_be_library(full)
    if library is None:
        return ("missing", full)
    # a library that has not been loaded may be large, and its name says enough
    if library and full not in sys.modules:
        return ("library", full)
    try:
        module = importlib.import_module(full)
        for each in taken:
            if not library and not hasattr(module, each):
                importlib.import_module(f"{full}.{each}")
    except Exception:  # noqa: BLE001  # whatever the user's module raises
        return walk.unnamed(full)
    if not taken:  # which attributes are read is not followed through local variables
        return [walk.name(sys.modules[full.partition(".")[0]]), walk.name(module)]
    return [_name_reached(walk, module, (each,)) for each in taken]


def name_module(walk: Walk, module: types.ModuleType) -> Any:
    """Return a library by name; of a module of the user's all that is in it."""
    if is_library_module(module):
        return ("library", module.__name__)
    return ("module", module.__name__, _name_namespace(walk, vars(module)))


def _name_namespace(walk: Walk, names: Mapping[str, Any]) -> Any:
    """Return all names of a module with their values."""
    return walk.again(names) or [
        (name, walk.name(value))
        for name, value in sorted(names.items())
        if name == "__getattr__" or not (name.startswith("__") and name.endswith("__"))
    ]


def name_method(walk: Walk, method: types.MethodType) -> Any:
    """Return a bound method."""
    return ("method", walk.name(method.__func__), walk.name(method.__self__))


def name_builtin(walk: Walk, function: types.BuiltinFunctionType) -> Any:
    """Return a function that is not written in Python; a bound one with its object."""
    found = library_name(function)
    if found is not None:
        return walk.unnamed(function) if found in _UNFORESEEN else ("library", *found)
    owner = function.__self__
    if owner is not None and not isinstance(owner, types.ModuleType):
        return ("method", function.__name__, walk.name(owner))
    file = compiled_file(function) or walk.unnamed(function)
    return ("compiled", function.__qualname__, file)


def compiled_file(value: Any) -> str | None:
    """Return a hash of the user's compiled module that something is from."""
    file = origins.extension_file(value)
    return None if file is None else origins.file_digest(*file)


def name_cached(walk: Walk, function: Any) -> Any:
    """Return a function behind functools.lru_cache."""
    found = library_name(function)
    if found:
        return ("library", *found)
    again = walk.again(function)
    if again:
        return again
    options = list(function.cache_parameters().items())
    # the other attributes are copies of those of the function
    more = {k: v for k, v in vars(function).items() if not k.startswith(("__", "cache_"))}
    return ("cached", walk.name(function.__wrapped__), options, walk.name(more))
