"""Write the parameters of a UDF as a short JSON text, which files of results have as an attribute.

It never asks objects of users for their `repr`, which can be slow, or contain an address in memory.
"""

from __future__ import annotations

import enum
import json
import math
import os
import re
from collections.abc import Collection, Mapping
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

    Parameters that are None are left out.
    """
    given = {k: v for k, v in udf._kwargs.items() if v is not None and not k.startswith("_")}
    return _as_json(_described_all(given, _DEPTH))


def with_changes(text: str, changes: Mapping[str, Any]) -> str:
    """Return the text of parameters, some of which have changed during a run."""
    return _as_json({**json.loads(text), **_described_all(changes, _DEPTH)})


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


def _described_all(values: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    """Return descriptions of values by name."""
    return {
        str(name)[:_LONGEST_VALUE]: (
            "not saved" if _SECRET.search(str(name)) else _described(value, depth)
        )
        for name, value in values.items()
    }


def _described(value: Any, depth: int) -> Any:
    """Return a value if JSON holds it and it is short, or else a few words about it."""
    try:
        return _value_or_words(value, depth)
    except Exception:  # noqa: BLE001  # attributes of objects of users raise anything
        return type(value).__name__


def _value_or_words(value: Any, depth: int) -> Any:
    """Return a value that JSON holds, or a few words about it."""
    if (
        isinstance(value, (np.ndarray, np.generic))
        and not value.ndim
        and value.dtype.kind in "biuf"
    ):
        value = value.item()
    match value:
        case enum.Enum():
            return value.name
        case None | bool():
            return value
        case int() if abs(value) < 1 << 64:
            return int(value)
        case float() if math.isfinite(value):
            return float(value)
        case str() | os.PathLike():
            text = str(os.fspath(value))
            text = without_secrets(text) if "://" in text else text
            is_short = len(text) <= _LONGEST_VALUE
            return text if is_short else f"text of {len(text):,} characters"
        case Quantity():
            return f"{value.value:.12g} {value.unit}"
        case int() | float() | complex() | np.generic() | np.dtype() | range():
            return str(value)[:_LONGEST_VALUE]
        case partial():
            return _described(value.func, depth)
        case dict() if depth and len(value) <= _MOST_MEMBERS:
            return _described_all(value, depth - 1)
        case list() | tuple() if depth and len(value) <= _MOST_MEMBERS:
            return [_described(member, depth - 1) for member in value]
    return _words(value, depth)


def _words(value: Any, depth: int) -> Any:
    """Return the values of a dataclass, or a few words about an array, a function or an object."""
    if isinstance(value, AuxData):
        return f"{_described(value.data, depth)}, kind {value.kind}"
    name = getattr(value, "__name__", None)
    if isinstance(value, type) or (
        callable(value) and isinstance(name, str) and not is_lazy(value)
    ):
        return str(name)[:_LONGEST_VALUE]
    if isinstance(getattr(value, "shape", None), tuple):
        # sizes that dask does not know are NaN
        shape = tuple(n if isinstance(n, float) else int(n) for n in value.shape)
        return f"array of shape {shape}, {str(value.dtype)[:_LONGEST_VALUE]}"
    if is_lazy(value):
        return f"lazy {type(value).__name__}"
    if is_dataclass(value) and depth:
        values = {field.name: getattr(value, field.name) for field in fields(value)}
        return {"class": type(value).__name__, **_described_all(values, depth - 1)}
    if isinstance(value, Collection):
        return f"{type(value).__name__} of {len(value)} values"
    return type(value).__name__
