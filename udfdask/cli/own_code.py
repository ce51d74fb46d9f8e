"""Find what ``module:name`` or ``file.py:name`` stands for in the code of a user."""

from __future__ import annotations

import difflib
import functools
import importlib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Collection
from pathlib import Path
from types import ModuleType
from typing import Any

from udfdask.libertem_udfs import udf_name

_PLACE = re.compile(r"\s*(.+?\.py|[\w.]+):([A-Za-z_][\w.]*)\s*(?:[:,](.*)|$)", re.DOTALL)


_FEW = 8
"""Number of UDFs of a module that a message names."""


def split_place(text: str) -> tuple[str, str, str] | None:
    """Split ``mine.py:Peak:r=3`` into the module or file, the name, and the rest.

    Return None if the text has another form, such as ``com:r=3``.
    """
    found = _PLACE.fullmatch(text)
    return None if found is None else (found[1], found[2], found[3] or "")


def find_own(place: str, name: str) -> Any:
    """Return the object of this name in a module or file; raise ValueError if there is none.

    The module is imported. Its objects are pickled by value, so that they arrive on workers that
    cannot import it.
    """
    module = _module(place)
    found: Any = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            near = difflib.get_close_matches(part, dir(found), n=2)
            hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else _udfs_in(module)
            raise ValueError(f"there is no {name!r} in {place}{hint}") from None
    return found


def without_a_name(place: str) -> str:
    """Return the message for a file without the name of a UDF in it, with the names it has."""
    if not Path(place).expanduser().is_file():
        return f"there is no file {place}"
    words = f"{place!r} is a file: write {place}:Name, with the name of a UDF in it"
    try:
        return words + _udfs_in(_module(place))
    except ValueError as error:
        return f"{words}; {error}"


def _udfs_in(module: ModuleType) -> str:
    """Return which UDFs a module defines, in words; an empty text if there is none."""
    names = [
        name
        for name, value in vars(module).items()
        if udf_name(value) is not None and getattr(value, "__module__", "") == module.__name__
    ]
    return f"; it has {', '.join(names[:_FEW])}" if names else ""


def _module(place: str) -> ModuleType:
    """Import a module by its name, or run a file as a module; raise ValueError if it fails."""
    is_file = place.endswith(".py")
    path = Path(place).expanduser().absolute()
    if is_file and not path.is_file():
        raise ValueError(f"there is no file {place}")
    try:
        return _of_file(path) if is_file else _of_name(place)
    except ModuleNotFoundError as error:
        if not is_file and error.name and f"{place}.".startswith(f"{error.name}."):
            raise ValueError(
                f"there is no module {error.name!r} in the current folder, nor an installed one; "
                f"for a file write {place.rpartition('.')[2]}.py:..."
            ) from None
        raise ValueError(own_failure(place, error)) from error
    except (Exception, SystemExit) as error:  # whatever the user's code raises
        raise ValueError(own_failure(place, error)) from error


@functools.cache
def _of_name(name: str) -> ModuleType:
    """Import a module, also from the current folder, as ``python -m`` does."""
    return _importing(lambda: importlib.import_module(name), Path.cwd())


@functools.cache
def _of_file(path: Path) -> ModuleType:
    """Run a file once as a module, which can import other files of its folder."""
    return _importing(lambda: _run(path), path.parent)


def _run(path: Path) -> ModuleType:
    """Run a file as a module with the name of the file, if no other module has it."""
    name = path.stem
    known = importlib.util.find_spec(name) if name.isidentifier() else None
    if name in sys.modules or not (known is None or known.origin == str(path)):
        name = f"_own_{name}"
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


def _importing(run: Callable[[], ModuleType], folder: Path) -> ModuleType:
    """Import something with a folder that is searched first; pickle its modules by value."""
    before = set(sys.modules)
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    module = run()
    _pickle_by_value({*(sys.modules.keys() - before), module.__name__}, folder)
    return module


def _pickle_by_value(names: Collection[str], folder: Path) -> None:
    """Pickle objects of these modules by value, if their files are in a folder of the user."""
    import cloudpickle

    for name in names:
        module = sys.modules.get(name)
        file = getattr(module, "__file__", None)
        if module is None or not file:
            continue
        inside = Path(file).is_relative_to(folder)
        if inside and not {"site-packages", "dist-packages"} & set(Path(file).parts):
            cloudpickle.register_pickle_by_value(module)


def own_failure(place: str, error: BaseException) -> str:
    """Return an exception of the user's code in words, with the line that raised it."""
    kind = type(error).__name__
    if isinstance(error, SyntaxError) and error.filename:
        line = f"\n    {error.text.strip()}" if error.text else ""
        where = f"{error.filename}, line {error.lineno}"
        return f"{place} has a syntax error in {where}: {error.msg}{line}"
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename != __file__ and "importlib" not in frame.filename
    ]
    words = f"{place} failed with {kind}: {error}"
    if not frames:
        return words
    own = _last_of_user(frames)
    return f"{words}, in {own.filename}, line {own.lineno}\n    {own.line}"


def _last_of_user(frames: list[traceback.FrameSummary]) -> traceback.FrameSummary:
    """Return the last line of a traceback that is not in an installed package."""
    for frame in reversed(frames):
        parts = set(Path(frame.filename).parts)
        if Path(frame.filename).is_file() and not parts & {"site-packages", "dist-packages"}:
            return frame
    return frames[-1]


def in_words(found: Any) -> str:
    """Return what kind of object this is."""
    if inspect.isclass(found):
        return "a class that is not derived from udfdask.UDF or LiberTEM's UDF"
    if inspect.isfunction(found):
        return "a function"
    if inspect.ismodule(found):
        return "a module"
    return f"of type {type(found).__name__}"
