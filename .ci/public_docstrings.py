"""Validate the docstrings of all that users can reach, in full.

`numpydoc lint` reads every function and asks of internal ones only good form. This script checks
what users can reach, against the real signatures and the code:

- A function, a class and a method that users call or write has Parameters, Returns, Raises and an
  example. pytest runs the examples.
- A property or a field has a description. The example of its class shows how it is used.
- A class that users do not make themselves, and a class whose fields are described where they
  stand, need no Parameters.
- The methods of a protocol, and of a class that users only reach by an attribute, are shown by the
  example of their class.
- Raises names every error that the code raises, or a base of it, also in the helpers that it
  calls.

Names that only other packages of udfdask import have the same sections, but need no example.
"""

import ast
import builtins
import dataclasses
import enum
import importlib
import inspect
import pkgutil
import re
import sys
import textwrap
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs" / "extensions"))

from numpydoc.validate import validate
from sphinx.pycode import ModuleAnalyzer

import udfdask.errors
from public_names import members_of, public_objects, reached_objects

# no duty: a long summary, "See Also", a summary below the opening quotes, and the type in a line of
# several names that are "as in run_udf"
OPTIONAL = {"ES01", "GL01", "PR04", "SA01"}
NO_EXAMPLE = "EX01"
NO_PARAMETERS = "PR01"
DEPTH = 3
"""Calls within calls in which errors are looked for. Deeper ones are mostly not about arguments."""


def is_protocol(cls: type) -> bool:
    """Whether a class describes a hook, such as `process_tile`, for every class that has it."""
    return getattr(cls, "_is_protocol", False)


def has_parameters(cls: type, reached: bool) -> bool:
    """Whether users make instances; fields are described where they stand."""
    described = dataclasses.is_dataclass(cls) or issubclass(cls, enum.Enum) or is_protocol(cls)
    by_users = not reached and cls.__name__ != "ArrayAccessor"  # an array has it
    return "__init__" in vars(cls) and not described and by_users


def of_users() -> Iterator[tuple[str, Any, set[str]]]:
    """Dotted names of what users reach, with the object and the checks that do not apply."""
    public, reached = public_objects(), reached_objects()
    classes = {value for value in [*public.values(), *reached.values()] if inspect.isclass(value)}
    for dotted, value in {**public, **reached}.items():
        if not inspect.isclass(value):
            yield dotted, value, set()
            continue
        is_reached = dotted in reached
        yield dotted, value, set() if has_parameters(value, is_reached) else {NO_PARAMETERS}
        shown_by_class = {NO_EXAMPLE} if is_reached or is_protocol(value) else set()
        for name in members_of(value, classes).methods:
            yield f"{dotted}.{name}", getattr(value, name), shown_by_class


def of_packages() -> Iterator[tuple[str, Any, set[str]]]:
    """Yield what packages offer to other packages."""
    packages = [info.name for info in pkgutil.iter_modules(udfdask.__path__) if info.ispkg]
    for module in [importlib.import_module(f"udfdask.{name}") for name in packages]:
        for name in getattr(module, "__all__", ()):
            value, dotted = getattr(module, name), f"{module.__name__}.{name}"
            if inspect.isclass(value):
                exempt = set() if has_parameters(value, reached=False) else {NO_PARAMETERS}
                yield dotted, value, exempt | {NO_EXAMPLE}
            elif inspect.isfunction(value):
                yield dotted, value, {NO_EXAMPLE}


def without_description() -> Iterator[str]:
    """Yield the properties and fields that say nothing about themselves."""
    public, reached = public_objects(), reached_objects()
    objects = {**public, **reached}
    classes = {value for value in objects.values() if inspect.isclass(value)}
    for dotted, cls in objects.items():
        for name in members_of(cls, classes).attributes if inspect.isclass(cls) else ():
            value = inspect.getattr_static(cls, name, None)
            if isinstance(value, (property, cached_property)):
                text = value.func.__doc__ if isinstance(value, cached_property) else value.__doc__
            else:
                text = next(filter(None, (comment(base, name) for base in cls.__mro__)), None)
            if not (text or "").strip():
                yield f"{dotted}.{name}: has no description"


def comment(cls: type, name: str) -> str | None:
    """Return the text below a field, or of a descriptor."""
    if cls.__module__.partition(".")[0] != "udfdask":
        return None
    found = ModuleAnalyzer.for_module(cls.__module__).find_attr_docs()
    lines = found.get((cls.__qualname__, name)) or found.get((f"{cls.__qualname__}.__init__", name))
    return " ".join(lines) if lines else getattr(vars(cls).get(name), "__doc__", None)


def raised_by(function: Any, seen: set[Any], depth: int = DEPTH) -> Iterator[type]:
    """Yield the errors that a function raises, also in the helpers that it calls."""
    function = inspect.unwrap(getattr(function, "__func__", function))
    if function in seen or not inspect.isfunction(function) or depth < 0:
        return
    seen.add(function)
    made = function.__code__.co_filename[0] == "<"  # by dataclasses, for example
    if made or not function.__module__.startswith("udfdask"):
        return
    module = sys.modules[function.__module__]
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            name = getattr(node.exc.func, "id", "")
            kind = getattr(module, name, getattr(builtins, name, None))
            if inspect.isclass(kind) and issubclass(kind, Exception):
                yield kind
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield from raised_by(getattr(module, node.func.id, None), seen, depth - 1)


def words(section: str) -> list[str]:
    """Return the names of errors in the section Raises."""
    return re.findall(r"\b[A-Z]\w*(?:Error|Exception|Cancelled)\b", section)


def undocumented_errors(dotted: str, value: Any) -> Iterator[str]:
    """Yield the errors that the code raises and the docstring does not name."""
    text = inspect.getdoc(value) or ""
    section = text.partition("\nRaises\n------")[2].partition("\nExamples\n")[0]
    places = (sys.modules.get(inspect.unwrap(value).__module__), udfdask.errors, builtins)
    named = [getattr(place, word, None) for word in words(section) for place in places]
    in_section = [kind for kind in named if inspect.isclass(kind) and issubclass(kind, Exception)]
    functions = [value]
    if inspect.isclass(value):
        names = ("__init__", "__post_init__", "__new__")
        functions = [vars(value)[name] for name in names if name in vars(value)]
    seen: set[Any] = set()
    for function in functions:
        for kind in sorted(set(raised_by(function, seen)), key=str):
            if not any(issubclass(one, kind) or issubclass(kind, one) for one in in_section):
                yield f"{dotted}: raises {kind.__name__}, which is not in Raises"


def main() -> int:
    """Print each fault; return 1 if there is one."""
    checked: dict[str, tuple[Any, set[str]]] = {}
    for dotted, value, exempt in [*of_users(), *of_packages()]:
        checked.setdefault(dotted, (value, exempt))
    for value, exempt in checked.values():
        if "**options" in (value.__doc__ or ""):  # it says of which function they are the options
            vars(value).pop("__signature__", None)
            exempt.add("PR02")  # it may describe some of them itself
    faults = [
        f"{name}: {code} {message}"
        for name, (_, exempt) in checked.items()
        for code, message in validate(name)["errors"]
        if code not in OPTIONAL | exempt
    ]
    faults += without_description()
    for dotted, (value, _) in checked.items():
        faults += undocumented_errors(dotted, value)
    print("\n".join([*faults, f"{len(checked)} public docstrings, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
