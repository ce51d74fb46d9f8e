"""Validate the docstrings of all that users can reach, in full.

`numpydoc lint` reads every function and asks of internal ones only good form. What the package and
its public subpackages offer must have all of its sections as well, checked here against the real
signatures.
"""

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator

from numpydoc.validate import validate

import udfdask

# no duty: the long summary, examples, "See Also", and a summary below the opening quotes
OPTIONAL = {"ES01", "EX01", "GL01", "SA01"}


def public_names() -> Iterator[str]:
    """Dotted names of public functions, classes and the methods that those classes define."""
    packages = [info.name for info in pkgutil.iter_modules(udfdask.__path__) if info.ispkg]
    modules = [udfdask, *(importlib.import_module(f"udfdask.{name}") for name in packages)]
    for module in modules:
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if inspect.isclass(value):
                yield f"{module.__name__}.{name}"
                for attribute, member in vars(value).items():
                    if not attribute.startswith("_") and callable(member) and member.__doc__:
                        yield f"{module.__name__}.{name}.{attribute}"
            elif inspect.isfunction(value):
                yield f"{module.__name__}.{name}"


def main() -> int:
    """Print each fault; return 1 if there is one."""
    names = list(public_names())
    faults = [
        f"{name}: {code} {message}"
        for name in names
        for code, message in validate(name)["errors"]
        if code not in OPTIONAL
    ]
    print("\n".join([*faults, f"{len(names)} public docstrings, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
