"""Which code belongs to a library, and under which name it is found there.

Libraries are the standard library, what is installed in site-packages, and udfdask itself: their
code changes only with their version. All other code is the user's and may be edited at any time.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import sys
import sysconfig
import types
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

_INSTALLED = frozenset({"site-packages", "dist-packages"})
_STANDARD = Path(sysconfig.get_paths()["stdlib"]).resolve()


def is_library(name: str) -> bool:
    """Return whether a loaded module of this name is part of a library."""
    module = sys.modules.get(name)
    # `python -m tool` runs a file of site-packages as __main__, in which a debugger may define more
    if module is None or name == "__main__":
        return False
    return _lies_in_library(name, getattr(module, "__file__", None))


def is_library_module(module: types.ModuleType) -> bool:
    """Return whether a module is a library's, and not another that bears its name."""
    return sys.modules.get(module.__name__) is module and is_library(module.__name__)


def is_library_scope(scope: Mapping[str, Any]) -> bool:
    """Return whether these are the globals of a library's module."""
    name = scope.get("__name__")
    return isinstance(name, str) and is_library(name) and vars(sys.modules[name]) is scope


@lru_cache(maxsize=1 << 14)
def _lies_in_library(name: str, file: str | None) -> bool:
    """Return whether a module lies in a library, by its file, or by its name if it has none."""
    top = name.partition(".")[0]
    if top == "udfdask":
        return True
    if file is None:  # built into the interpreter; or made by hand, or a folder without __init__
        return top in sys.builtin_module_names or name in sys.stdlib_module_names
    return not _is_users(Path(file))


def _is_users(path: Path) -> bool:
    """Return whether a file belongs to the user."""
    real = path.resolve()
    return _STANDARD not in real.parents and _INSTALLED.isdisjoint((*path.parts, *real.parts))


def will_be_library(name: str) -> bool | None:
    """Return whether importing a module would load a library's; None if there is none to load."""
    if name in sys.modules:
        return is_library(name)
    top = name.partition(".")[0]
    if top in sys.modules:
        return is_library(top)
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None
    return (
        None if spec is None else _lies_in_library(top, spec.origin if spec.has_location else None)
    )


def library_name(thing: Any) -> tuple[str, str] | None:
    """Return module and qualified name of a library's object; None if it is not found there.

    It must be the very object that its library has under that name. A closure or a decorated
    function often claims the name of another.
    """
    if isinstance(thing, types.FunctionType):  # functools.wraps overwrites __module__
        module: Any = thing.__globals__.get("__name__")
    else:
        module = getattr(thing, "__module__", None)
    name = getattr(thing, "__qualname__", None)
    if not (isinstance(module, str) and isinstance(name, str) and is_library(module)):
        return None
    return (module, name) if _at(sys.modules[module], name) is thing else None


def is_found(thing: Any, name: str) -> bool:
    """Return whether an object is what its module, by default that of builtins, calls so."""
    module = sys.modules.get(getattr(thing, "__module__", None) or "builtins")
    return _at(module, name) is thing


def _at(there: Any, name: str) -> Any:
    """Return what is found under a qualified name; None if there is nothing."""
    for part in name.split("."):
        there = getattr(there, part, None)
    return there


@lru_cache(maxsize=1024)
def ufunc_name(ufunc: np.ufunc) -> tuple[str, str] | None:
    """Return a library's module that has a ufunc under its name; None for others.

    The function inside one that `numpy.frompyfunc` made cannot be reached.
    """
    for module in ("numpy", "scipy.special", *sys.modules):
        if module in sys.modules and is_library(module):
            names = getattr(sys.modules[module], "__dict__", {})
            if names.get(ufunc.__name__) is ufunc:
                return (module, ufunc.__name__)
    return None


def extension_file(thing: Any) -> tuple[str, int, int] | None:
    """Return path, time and size of the compiled module of the user's that something is from."""
    file = getattr(sys.modules.get(getattr(thing, "__module__", None) or ""), "__file__", None)
    if file is None or not file.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES)):
        return None
    found = Path(file).stat()
    return (file, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=256)
def file_digest(path: str, written: int, size: int) -> str:
    """Return a hash of a file; when it was written and its size tell its versions apart."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


@lru_cache(maxsize=1)
def own_version() -> str:
    """Return the version of udfdask; of a checkout, whose files are edited, a hash of all files."""
    package = Path(__file__).resolve().parents[1]
    if not _is_users(package):
        return str(getattr(sys.modules["udfdask"], "__version__", ""))
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()
