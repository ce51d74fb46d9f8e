"""Copies the parameters of a run, so that it computes what they were when it was made.

A lazy run reads its parameters when it is computed, perhaps hours later, and its name is made from
their values now. An array that is changed in between would give another result under the same name.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from dask.utils import is_arraylike

from udfdask.types import AnyArray
from udfdask.udf.aux_data import AuxData
from udfdask.udf.nested_collections import is_lazy


def own_parameters(given: Mapping[str, Any], seen: dict[int, tuple[Any, Any]]) -> dict[str, Any]:
    """Return parameters with copies of all arrays and containers that somebody could change.

    Parameters
    ----------
    given : mapping
        The parameters of a UDF.
    seen : dict of int to (object, object)
        What was copied, by its id: an array that is given twice stays one array. It is filled.

    Returns
    -------
    dict
        The parameters. Values that need no copy are the same objects.
    """
    return {name: _own(value, seen) for name, value in given.items()}


def _own(value: Any, seen: dict[int, tuple[Any, Any]]) -> Any:
    """Return a value, or a copy of it that nobody else holds."""
    if id(value) in seen:
        return seen[id(value)][1]
    kept = value
    if isinstance(value, AuxData):
        data = _own(value.data, seen)
        kept = value if data is value.data else replace(value, data=data)
    elif is_lazy(value) or isinstance(value, np.generic):
        return value
    elif isinstance(value, np.ndarray):
        kept = _own_array(value)
    elif isinstance(value, dict) or type(value) is list:
        return _own_contents(value, seen)
    elif type(value) in {tuple, set, frozenset} or hasattr(type(value), "_make"):
        kept = _own_members(value, seen)
    elif is_arraylike(value) and hasattr(value, "copy"):
        kept = value.copy()
    # the value itself is kept too: while it lives, no other object has its id
    seen[id(value)] = (value, kept)
    return kept


def _own_array(array: AnyArray) -> AnyArray:
    """Return an array, or a copy if somebody can write to its memory.

    Axes that repeat one value, as `numpy.broadcast_to` makes them, are not filled.
    """
    if not _is_writable(array):
        return array
    once = tuple(slice(0, 1) if step == 0 else slice(None) for step in array.strides)
    own = array[once].copy(order="K")
    return own if own.shape == array.shape else np.broadcast_to(own, array.shape, subok=True)


def _is_writable(array: Any) -> bool:
    """Return whether an array can be written to, or one that it is a view of."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return True
        array = array.base
    return isinstance(array, (memoryview, bytearray))


def _own_contents(value: Any, seen: dict[int, tuple[Any, Any]]) -> Any:
    """Return a list or dictionary of own members."""
    kept = copy.copy(value)  # a subclass of dict stays one
    seen[id(value)] = (value, kept)  # before the members, one of which may be this container
    if isinstance(kept, list):
        kept[:] = [_own(member, seen) for member in value]
    else:
        kept.update((name, _own(member, seen)) for name, member in value.items())
    return kept


def _own_members(value: Any, seen: dict[int, tuple[Any, Any]]) -> Any:
    """Return a tuple or set of own members."""
    members = [_own(member, seen) for member in value]
    if type(value) is set:
        return set(members)
    if all(a is b for a, b in zip(value, members, strict=True)):
        return value
    return value._make(members) if hasattr(value, "_make") else type(value)(members)
