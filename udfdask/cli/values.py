"""What a user types for a parameter of a UDF, and the value that is meant."""

from __future__ import annotations

import ast
import functools
import importlib.util
import inspect
import pkgutil
import re
from pathlib import Path
from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError
from udfdask.io.numpy_file import read_npy
from udfdask.masks import DiscTemplate

_CONSTANTS = {
    "true": True,
    "false": False,
    "none": None,
    "inf": float("inf"),
    "-inf": float("-inf"),
    "nan": float("nan"),
}
_OPENING, _CLOSING = "([{", ")]}"


def split_settings(text: str) -> tuple[list[str], dict[str, str]]:
    """Take ``5,r=3,peaks=[[1,2]]``; return the values without a name, and those with one.

    Raises ValueError where it cannot be told what belongs together.
    """
    unnamed: list[str] = []
    named: dict[str, str] = {}
    for part in _split(text):
        found = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*=(.*)", part, re.DOTALL)
        if found is None and named:
            raise ValueError(f"{part.strip()!r} has no name, but comes after one that has")
        if found is None:
            unnamed.append(part.strip())
        elif found[1] in named:
            raise ValueError(f"{found[1]!r} is given twice")
        else:
            named[found[1]] = found[2].strip()
    return unnamed, named


def _split(text: str) -> list[str]:
    """Return the parts between the commas that stand outside of brackets and quotes."""
    if not text.strip():
        return []
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        depth += 0 if quote else (letter in _OPENING) - (letter in _CLOSING)
        if letter == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    if depth or quote:
        raise ValueError(f"a bracket or a quote of {text!r} has no partner")
    return parts


def read_value(parameter: inspect.Parameter, text: str) -> Any:
    """Take a parameter of a UDF and what was typed for it; return the value that is meant.

    Numbers, true, false, none, inf, lists in brackets and words mean themselves; a name ending in
    .npy is the array in that file; where a function is wanted, ``module:name`` or ``file.py:name``
    is one; a number for a template is the radius of a disc. Raises ValueError or ArgumentTypeError
    where nothing is meant.
    """
    wanted = str(parameter.annotation)
    if "PathLike" in wanted:
        return text
    if text.endswith(".npy"):
        array = _load(text)
        return functools.partial(np.asarray, array) if "Callable" in wanted else array
    if "Callable" in wanted:
        return _function(text)
    value = _literal(text)
    if parameter.name == "template" and isinstance(value, int | float):
        return DiscTemplate(radius=value)
    return value


def _literal(text: str) -> Any:
    """Return a number, a list, a constant, or else the text itself."""
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        if text[:1] in (*_OPENING, "'", '"'):
            raise ValueError(f"{text!r} is neither a list of numbers nor anything else") from None
        return text


def _load(name: str) -> np.ndarray[Any, Any]:
    """Return the array in an .npy file."""
    try:
        return read_npy(name)
    except OSError as error:
        raise ValueError(str(error)) from None


def _function(text: str) -> Any:
    """Return the function that ``module:name`` or ``file.py:name`` stands for."""
    place, _, name = text.rpartition(":")
    try:
        found = getattr(_run_file(place), name) if place.endswith(".py") else _resolve(text)
    except (ImportError, AttributeError, OSError, SyntaxError) as error:
        raise ValueError(f"{text!r} is not found: {error}") from None
    if not callable(found):
        raise ArgumentTypeError(f"{text!r} is no function, but {found!r}")
    return found


def _resolve(text: str) -> Any:
    """Return what a module calls so."""
    if not re.fullmatch(r"[\w.]+:[\w.]+", text):
        raise ValueError(
            f"{text!r} is no function: write numpy:max, or analysis.py:peak for one of a file"
        )
    return pkgutil.resolve_name(text)


def _run_file(place: str) -> Any:
    """Return a Python file as a module that nobody else can import: it travels by value."""
    path = Path(place)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None  # for names ending in .py there always is one
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
