"""Validate the docstrings of all that users can reach, in full.

`numpydoc lint` reads every function and asks of internal ones only good form. What the package and
its public subpackages offer must have all of its sections as well, checked here against the real
signatures.
"""

import dataclasses
import enum
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator

from numpydoc.validate import validate

import udfdask

# no duty: a long summary, an example, "See Also", a summary below the opening quotes, and the type
# in a line of several names that are "as in run_udf"
OPTIONAL = {"ES01", "EX01", "GL01", "PR04", "SA01"}


def is_protocol(cls: type) -> bool:
    """Whether a class describes a hook, such as `process_tile`, for every class that has it."""
    return getattr(cls, "_is_protocol", False)


HOOKS = {
    name
    for cls in vars(udfdask).values()
    if inspect.isclass(cls) and is_protocol(cls)
    for name in vars(cls)
}


def own_methods(cls: type, public: list[object]) -> Iterator[str]:
    """Public methods of a class, without those that a public base or a protocol describes."""
    ours = [base for base in cls.__mro__ if base.__module__.partition(".")[0] == "udfdask"]
    hidden = [base for base in ours if base is not cls and base not in public]
    described_there = [base for base in cls.__mro__[1:-1] if base not in hidden]
    for name, member in {k: v for base in [*hidden, cls] for k, v in vars(base).items()}.items():
        function = getattr(member, "__func__", member)  # of a class or static method
        inherited = any(hasattr(base, name) for base in described_there)
        described = inherited or (name in HOOKS and not is_protocol(cls))
        if inspect.isfunction(function) and not name.startswith("_") and not described:
            yield name


def has_parameters(cls: type) -> bool:
    """Whether a class has a constructor of its own; fields are described where they stand."""
    described = dataclasses.is_dataclass(cls) or issubclass(cls, enum.Enum) or is_protocol(cls)
    return "__init__" in vars(cls) and not described


def public_docstrings() -> Iterator[tuple[str, set[str]]]:
    """Dotted names of what users can reach, each with the checks that do not apply to it."""
    packages = [info.name for info in pkgutil.iter_modules(udfdask.__path__) if info.ispkg]
    modules = [udfdask, *(importlib.import_module(f"udfdask.{name}") for name in packages)]
    offered = [
        getattr(module, name) for module in modules for name in getattr(module, "__all__", ())
    ]
    for module in [*modules, *filter(inspect.ismodule, offered)]:
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            dotted = f"{module.__name__}.{name}"
            if inspect.isclass(value):
                yield dotted, set() if has_parameters(value) else {"PR01"}
                yield from ((f"{dotted}.{method}", set()) for method in own_methods(value, offered))
            elif inspect.isfunction(value):
                yield dotted, set()


def main() -> int:
    """Print each fault; return 1 if there is one."""
    checked = list(public_docstrings())
    faults = [
        f"{name}: {code} {message}"
        for name, exempt in checked
        for code, message in validate(name)["errors"]
        if code not in OPTIONAL | exempt
    ]
    print("\n".join([*faults, f"{len(checked)} public docstrings, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
