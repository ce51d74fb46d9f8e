"""Names of a package that are imported when they are used first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_names(
    package: str, names: Mapping[str, str], parts: str = ""
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package.

    `names` has the names that each module defines, and `parts` are subpackages, both with spaces
    between them. A module is named from the package; one dot before it means the package around it.
    Parts can be used without an import of their own.
    """
    module_of = {name: module for module, some in names.items() for name in some.split()}

    def get(name: str) -> object:
        if name in module_of:
            return getattr(import_module(f".{module_of[name]}", package), name)
        if name in parts.split():
            return import_module(f".{name}", package)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def names_of() -> list[str]:
        return sorted(module_of)

    return get, names_of
