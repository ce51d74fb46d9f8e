"""Write the parameters of a UDF as a short text, which files of results have as an attribute.

The text is made when a run is planned, and holds no parameter alive. It is JSON, so that programs
can read it. It never asks objects of users for their values: these can be large or lazy, and their
`repr` can contain an address in memory, so that equal runs would write different files.
"""

from __future__ import annotations

import enum
import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np

from udfdask.errors import without_secrets
from udfdask.geometry.units import Quantity
from udfdask.udf import UDF
from udfdask.udf.aux_data import AuxData
from udfdask.udf.params import is_lazy

_LONGEST = 4000
"""About the most characters of the text: attributes in an .npz file have at most 65,535 bytes."""
_LONGEST_VALUE = 200
"""Most characters of a text among the values."""
_MOST_MEMBERS = 16
"""Most members of a list or dictionary that are written."""
_DEPTH = 3
"""How deep lists and dictionaries are written."""

_SECRET = re.compile(r"passw|secret|token|credential|(api|access|private)_?key", re.IGNORECASE)


def parameter_text(udf: UDF) -> str:
    """Return the parameters of a UDF as the user gave them, a JSON object in the order of the UDF.

    A parameter that is None by default and has no value is left out.
    """
    optional = _none_by_default(type(udf))
    given = {
        name: value
        for name, value in udf._kwargs.items()
        if not name.startswith("_") and not (value is None and name in optional)
    }
    return _as_json(_described_all(given))


def with_changes(text: str, changes: Mapping[str, Any]) -> str:
    """Return the text of parameters, some of which have changed during a run."""
    return _as_json({**json.loads(text), **_described_all(changes)})


def _none_by_default(cls: type) -> set[str]:
    """Return the names of the parameters of a class that are None by default."""
    found: dict[str, Any] = {}
    for each in cls.__mro__:
        init = vars(each).get("__init__")
        code = getattr(init, "__code__", None)  # `inspect.signature` would take 0.1 ms
        if init is None or code is None:
            continue
        names, defaults = code.co_varnames[: code.co_argcount], init.__defaults__ or ()
        by_place = zip(names[len(names) - len(defaults) :], defaults, strict=True)
        found = {**dict(by_place), **(init.__kwdefaults__ or {}), **found}
    return {name for name, default in found.items() if default is None}


def _as_json(described: Mapping[str, Any]) -> str:
    """Return described values as JSON; those that do not fit any more are only counted."""
    kept: dict[str, Any] = {}
    free = _LONGEST
    for name, value in described.items():
        free -= len(json.dumps({name: value}, ensure_ascii=False))
        if free < 0:
            kept["..."] = f"and {len(described) - len(kept)} more"
            break
        kept[name] = value
    # names of files can have characters that no file holds as text
    return json.dumps(kept, ensure_ascii=False).encode("utf-8", "replace").decode()


def _described_all(values: Mapping[Any, Any], depth: int = _DEPTH) -> dict[str, Any]:
    """Return descriptions of values by name."""
    return {
        str(name)[:_LONGEST_VALUE]: (
            "not saved" if _SECRET.search(str(name)) else _described(value, depth)
        )
        for name, value in values.items()
    }


def _described(value: Any, depth: int) -> Any:
    """Return a value if it is short, or else a few words about it."""
    try:
        return _value_or_words(value, depth)
    except Exception:  # noqa: BLE001  # attributes of objects of users raise anything
        return type(value).__name__


def _value_or_words(value: Any, depth: int) -> Any:
    """Return a value that JSON holds, or a few words about it."""
    if isinstance(value, np.ndarray) and not value.ndim and value.dtype.kind in "biufc":
        value = value[()]  # one number
    if value is None or isinstance(value, (bool, np.bool_)):
        return None if value is None else bool(value)
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(
        value, enum.Enum
    ):
        return _number(value)
    if isinstance(value, (str, os.PathLike)):
        return _text(str(os.fspath(value)))
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, Quantity):
        return f"{value.value:.12g} {value.unit}"
    if isinstance(value, (complex, np.generic, np.dtype, range)):
        return str(value)[:_LONGEST_VALUE]
    if isinstance(value, AuxData):
        return f"{_array(value.data)}, kind {value.kind}"
    if _is_array(value):
        return _array(value)
    if is_lazy(value):
        return f"lazy {type(value).__name__}"
    return _container(value, depth)


def _number(value: Any) -> int | float | str:
    """Return a number of JSON, or a text for infinity and NaN."""
    if isinstance(value, (int, np.integer)):
        return int(value) if abs(int(value)) < 1 << 64 else "a large integer"
    # the digits that the user wrote: a float32 of 0.1 is 0.10000000149 as a float
    number = float(value) if isinstance(value, float) else float(str(value))
    return number if math.isfinite(number) else str(number)


def _text(value: str) -> str:
    """Return a text if it is short, without passwords in URLs."""
    text = without_secrets(value) if "://" in value else value
    return text if len(text) <= _LONGEST_VALUE else f"text of {len(text):,} characters"


def _container(value: Any, depth: int) -> Any:
    """Return a list, dictionary, dataclass or function, or a few words about it."""
    if isinstance(value, partial):
        return _container(value.func, depth)
    if callable(value) and isinstance(getattr(value, "__name__", None), str):
        return value.__name__[:_LONGEST_VALUE]
    if is_dataclass(value) and depth:
        values = {field.name: getattr(value, field.name) for field in fields(value)}
        return {"class": type(value).__name__, **_described_all(values, depth - 1)}
    if isinstance(value, (list, tuple)):
        if len(value) > _MOST_MEMBERS or not depth:
            return f"{type(value).__name__} of {len(value)} values"
        return [_described(member, depth - 1) for member in value]
    if isinstance(value, dict):
        if len(value) > _MOST_MEMBERS or not depth:
            return f"dictionary of {len(value)} values"
        return _described_all(value, depth - 1)
    if isinstance(value, (set, frozenset, bytes, bytearray)):
        return f"{type(value).__name__} of {len(value)} values"
    return type(value).__name__


def _is_array(value: Any) -> bool:
    """Return whether a value has a shape and a dtype; a Delayed has any attribute."""
    return isinstance(getattr(value, "shape", None), tuple) and not isinstance(value, type)


def _array(value: Any) -> str:
    """Return an array in words, such as "array of shape (256, 256), float32"."""
    dtype = getattr(value, "dtype", None)
    words = f"array of shape {tuple(_size(n) for n in value.shape)}"
    return words if dtype is None else f"{words}, {str(dtype)[:_LONGEST_VALUE]}"


def _size(n: Any) -> Any:
    """Return the size of an axis as a plain number; unknown sizes of dask arrays are NaN."""
    return n if isinstance(n, float) else int(n)
