"""Find what ``module:name`` or ``file.py:name`` stands for in the code of a user."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle

from udfdask.geometry.labeled_values import did_you_mean

_PLACE = re.compile(r"\s*(.+?\.py|[\w.]+):([A-Za-z_][\w.]*)\s*(?:[:,](.*)|$)", re.DOTALL)


def split_place(text: str) -> tuple[str, str, str] | None:
    """Split ``mine.py:Peak:r=3`` into the module or file, the name, and the rest.

    Return None if the text has another form, such as ``com:r=3``.
    """
    found = _PLACE.fullmatch(text)
    return None if found is None else (found[1], found[2], found[3] or "")


def find_own(place: str, name: str) -> Any:
    """Return the object of this name in a module or file; raise ValueError if there is none.

    The module is imported, and its objects are pickled by value, so that they arrive on workers
    that cannot import it.
    """
    found: Any = _module(place, Path.cwd())
    for part in name.split("."):
        if not hasattr(found, part):
            raise ValueError(f"there is no {name!r} in {place}{did_you_mean(part, dir(found))}")
        found = getattr(found, part)
    return found


@functools.cache
def _module(place: str, here: Path) -> ModuleType:
    """Import a module by its name, or run a file as a module; other files of its folder come first.

    Raise ValueError, with the lines of the user, if that fails.
    """
    is_file = place.endswith(".py")
    path = here / Path(place).expanduser()
    if is_file and not path.is_file():
        raise ValueError(f"there is no file {place}")
    folder = path.parent if is_file else here
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    before = set(sys.modules)
    try:
        module = _run(path) if is_file else importlib.import_module(place)
    except (Exception, SystemExit) as error:  # whatever the user's code raises
        frames = traceback.extract_tb(error.__traceback__)
        own = [f for f in frames if f.filename != __file__ and "importlib" not in f.filename]
        lines = [*traceback.format_list(own), *traceback.format_exception_only(error)]
        raise ValueError(f"{place} cannot be imported:\n{''.join(lines).rstrip()}") from error
    for name in {*(sys.modules.keys() - before), module.__name__}:
        _pickle_by_value(sys.modules[name], folder)
    return module


def _run(path: Path) -> ModuleType:
    """Run a file as a module; its name is not that of a module that others may import."""
    name = f"_own_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # a name that ends in .py always has a spec
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _pickle_by_value(module: ModuleType, folder: Path) -> None:
    """Pickle the objects of a module by value, if its file is in a folder of the user."""
    file = Path(getattr(module, "__file__", None) or "/")
    installed = {"site-packages", "dist-packages"} & set(file.parts)
    if file.is_relative_to(folder) and not installed:
        cloudpickle.register_pickle_by_value(module)
