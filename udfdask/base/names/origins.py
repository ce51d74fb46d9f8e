"""Find out whether code belongs to a library, its name there, and what else decides results.

Libraries are the standard library, packages in site-packages, and udfdask itself: their code
changes only with their version. All other code belongs to the user, who can edit it at any time.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import os
import platform
import sys
import sysconfig
import types
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import dask.config
import numpy as np

_MISSING = object()
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_STANDARD = Path(sysconfig.get_paths()["stdlib"]).resolve()
_VERSIONED = frozenset({"udfdask", "dask", "numba", "numpy"})


def is_library(name: str) -> bool:
    """Return whether a loaded module of this name is part of a library."""
    module = sys.modules.get(name)
    # `python -m tool` runs a file of site-packages as __main__, and a debugger can add code to it
    if module is None or name == "__main__":
        return False
    return _lies_in_library(name, getattr(module, "__file__", None))


def is_library_scope(scope: Mapping[str, Any]) -> bool:
    """Return whether this is the namespace of a library's module, not of another of its name."""
    name = scope.get("__name__")
    return isinstance(name, str) and is_library(name) and vars(sys.modules[name]) is scope


@lru_cache(maxsize=1 << 14)
def _lies_in_library(name: str, file: str | None) -> bool:
    """Return whether a module belongs to a library, by its file, or by its name without a file."""
    top = name.partition(".")[0]
    if top == "udfdask":
        return True
    if file is None:  # built into Python, made by hand, or a folder without __init__
        return top in sys.builtin_module_names or name in sys.stdlib_module_names
    return not _is_users(Path(file))


def _is_users(path: Path) -> bool:
    real = path.resolve()
    return _STANDARD not in real.parents and _INSTALLED.isdisjoint((*path.parts, *real.parts))


def will_be_library(name: str) -> bool | None:
    """Return whether a module that can be imported belongs to a library; None if not found."""
    if name in sys.modules:
        return is_library(name)
    top = name.partition(".")[0]
    if top in sys.modules:
        return is_library(top)
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    return _lies_in_library(top, spec.origin if spec.has_location else None)


def library_name(thing: Any) -> tuple[str, str] | None:
    """Return the module and the qualified name that lead to a library's object; otherwise None."""
    # closures and decorated functions often have the name of another object
    if isinstance(thing, types.FunctionType):  # functools.wraps overwrites __module__
        module: Any = thing.__globals__.get("__name__")
    else:
        module = _attribute(thing, "__module__")
    # a sentinel of Python 3.15 has only `__name__`, and so has a TypeVar
    name = _attribute(thing, "__qualname__") or _attribute(thing, "__name__")
    if not (isinstance(module, str) and isinstance(name, str) and is_library(module)):
        return None
    return (module, name) if _at(sys.modules[module], name) is thing else None


def is_found(thing: Any, name: str) -> bool:
    """Return whether a name in an object's module (by default builtins) leads to the object."""
    module = sys.modules.get(getattr(thing, "__module__", None) or "builtins")
    return _at(module, name) is thing


def _attribute(thing: Any, name: str) -> Any:
    """Return an attribute; None if it is missing, also where `__getattr__` raises a KeyError."""
    try:
        return getattr(thing, name, None)
    except Exception:  # noqa: BLE001  # any class of a user or a library, such as HyperSpy's Events
        return None


def _at(module: Any, name: str) -> Any:
    found = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


@lru_cache(maxsize=1024)
def ufunc_name(ufunc: np.ufunc) -> tuple[str, str] | None:
    """Return the library module and the name of a ufunc; None if no library contains it."""
    for module in ("numpy", "scipy.special", *sys.modules):
        if module in sys.modules and is_library(module):
            names = getattr(sys.modules[module], "__dict__", {})
            if names.get(ufunc.__name__) is ufunc:
                return (module, ufunc.__name__)
    return None


def library_state(module: str) -> tuple[str, ...]:
    """Return what tells whether a module of a library, loaded or not, is what it was."""
    top = module.partition(".")[0]
    # records name these versions; other packages that are developed often keep their version
    if top in _VERSIONED or top in sys.stdlib_module_names:
        return (module,)
    file = _origin(module)
    if file is None:
        return (module, distribution_version(top))
    status = file.stat()
    digest = _file_digest(str(file), status.st_mtime_ns, status.st_size)
    return (module, distribution_version(top), digest)


def _origin(module: str) -> Path | None:
    """Return the file of a module, found without loading it or its package."""
    parts = module.split(".")
    places = None
    spec = None
    for k in range(1, len(parts) + 1):
        spec = importlib.machinery.PathFinder.find_spec(".".join(parts[:k]), places)
        if spec is None:
            return None
        places = spec.submodule_search_locations
    file = Path(spec.origin) if spec is not None and spec.origin else None
    return file if file is not None and file.is_file() else None


@lru_cache(maxsize=256)
def distribution_version(top: str) -> str:
    """Return the version of the installed package that contains a top module; empty if unknown."""
    from importlib.metadata import PackageNotFoundError, packages_distributions, version

    try:
        return version(top)
    except PackageNotFoundError:
        names = packages_distributions().get(top, [])
        return ", ".join(version(name) for name in sorted(set(names)))


@lru_cache(maxsize=256)
def _file_digest(path: str, written: int, size: int) -> str:
    """Return a hash of a file; its modification time and size distinguish its versions."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


@lru_cache(maxsize=1)
def own_version() -> str:
    """Return the version of udfdask; for a source checkout, a hash of all files."""
    package = Path(__file__).resolve().parents[1]
    if not _is_users(package):
        return str(getattr(sys.modules["udfdask"], "__version__", ""))
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def settings_of(noted: Iterable[tuple[str, str]]) -> list[tuple[str, Any]]:
    """Return the environment variables and dask's settings that code names, and their values.

    They count only if the code uses `os` or `dask.config`. Others never count, so that a run goes
    on in another process, whose environment has other variables.
    """
    used = {name for kind, name in noted if kind == "library"}
    found: list[tuple[str, Any]] = []
    for text in sorted(text for kind, text in noted if kind == "text") if used else ():
        if "os" in used and text in os.environ:
            found.append((text, os.environ[text]))
        if used & {"dask", "dask.config"}:
            value = dask.config.get(text, _MISSING)
            found += [(text, value)] if value is not _MISSING else []
    return found


def versions() -> dict[str, str]:
    """Return the packages and the processor that decide the values of a partial result."""
    found = {name: distribution_version(name) for name in ("dask", "numba", "numpy")}
    python = platform.python_version()
    return {"udfdask": own_version(), "python": python, "processor": processor(), **found}


@lru_cache(maxsize=1)
def processor() -> str:
    """Return what decides in which order this processor sums up: vectors, BLAS and settings."""
    from threadpoolctl import threadpool_info  # only records need it

    vectors = np.show_config(mode="dicts")["SIMD Extensions"]
    # NumPy's own is loaded first; another library may bring another version of it
    blas = next((lib["architecture"] for lib in threadpool_info() if "architecture" in lib), None)
    settings = [os.environ.get(name) for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")]
    return repr((platform.machine(), vectors, blas, settings))
