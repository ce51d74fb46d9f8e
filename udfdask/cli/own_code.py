"""Find what ``module:name`` or ``file.py:name`` stands for in the code of a user."""

from __future__ import annotations

import functools
import importlib
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
    """Import a module by its name or its file; other files of its folder come first.

    Raise ValueError, with the lines of the user, if that fails.
    """
    path = here / Path(place).expanduser() if place.endswith(".py") else None
    if path is not None and not path.is_file():
        raise ValueError(f"there is no file {place}")
    folder = here if path is None else path.parent
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    before = set(sys.modules)
    try:
        module = importlib.import_module(place if path is None else path.stem)
    except (Exception, SystemExit) as error:  # whatever the user's code raises
        frames = traceback.extract_tb(error.__traceback__)
        own = [f for f in frames if f.filename != __file__ and "importlib" not in f.filename]
        lines = [*traceback.format_list(own), *traceback.format_exception_only(error)]
        raise ValueError(f"{place} cannot be imported:\n{''.join(lines).rstrip()}") from error
    if path is not None and not path.samefile(module.__file__ or "/"):
        raise ValueError(f"another module is called {path.stem!r}: give {place} another name")
    for name in {*(sys.modules.keys() - before), module.__name__}:
        file = Path(getattr(sys.modules[name], "__file__", None) or "/")
        installed = {"site-packages", "dist-packages"} & set(file.parts)
        if file.is_relative_to(folder) and not installed:
            cloudpickle.register_pickle_by_value(sys.modules[name])
    return module
