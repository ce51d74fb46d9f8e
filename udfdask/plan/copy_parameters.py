"""Copies the parameters of a run, so that it computes what they were when it was made.

A lazy run reads its parameters when it is computed, perhaps hours later, and its name is made from
their values now. An array that is changed in between would give another result under the same name.
Functions are code, not values: what they refer to is what it is when they are called.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from dask.utils import is_arraylike

from udfdask.types import AnyArray
from udfdask.udf.aux_data import AuxData
from udfdask.udf.nested_collections import is_lazy, lazy_places, member_at

CONSTANTS = (type(None), int, float, complex, str, bytes, np.generic)
"""Types of values that nobody changes; a list may have a million of them."""


def own_parameters(given: Mapping[str, Any], seen: dict[int, Any]) -> dict[str, Any]:
    """Return parameters with copies of all that somebody could change.

    Functions and classes, and objects that cannot be copied, such as open files, stay as they are.

    Parameters
    ----------
    given : mapping
        The parameters of a UDF.
    seen : dict of int to object
        What became of each value, by its id, as `copy.deepcopy` keeps it: an array that is given
        twice stays one array. It is filled.

    Returns
    -------
    dict
        The parameters. Values that need no copy are the same objects.
    """
    return {name: _own(value, seen) for name, value in given.items()}


def _own(value: Any, seen: dict[int, Any]) -> Any:
    """Return a value, or a copy of it that nobody else holds."""
    if isinstance(value, CONSTANTS) or is_lazy(value):
        return value
    if id(value) in seen:
        return seen[id(value)]
    kept: Any
    if isinstance(value, AuxData):
        data = _own(value.data, seen)
        kept = value if data is value.data else replace(value, data=data)
    elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
        kept = _own_array(value)
    elif isinstance(value, dict) or type(value) is list:
        return _own_contents(value, seen)
    elif type(value) in {tuple, set, frozenset} or hasattr(type(value), "_make"):
        kept = _own_members(value, seen)
    elif is_arraylike(value) and hasattr(value, "copy") and not isinstance(value, np.ndarray):
        kept = value.copy()
    else:
        kept = _own_object(value, seen)
    return _remember(value, kept, seen)


def _remember(value: Any, kept: Any, seen: dict[int, Any]) -> Any:
    """Return what became of a value, for whoever else holds it."""
    seen[id(value)] = kept
    # the value lives on, where `copy.deepcopy` keeps those it met: no other object has its id
    seen.setdefault(id(seen), []).append(value)
    return kept


def _own_object(value: Any, seen: dict[int, Any]) -> Any:
    """Return a copy of an object with all that it holds, or itself if it cannot be copied."""
    if type(value).__module__.startswith("udfdask."):  # those cannot be changed
        return value
    for place in lazy_places(value):
        found = member_at(value, place)
        _remember(found, found, seen)
    try:
        if isinstance(value, memoryview):
            return np.array(value).data
        if isinstance(value, MappingProxyType):
            return MappingProxyType(_own(dict(value), seen))
        return copy.deepcopy(value, seen)
    except Exception:  # noqa: BLE001  # whatever a class raises that has no copies
        return value


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


def _own_contents(value: Any, seen: dict[int, Any]) -> Any:
    """Return a list or dictionary of own members."""
    kept = copy.copy(value)  # a subclass of dict stays one
    _remember(value, kept, seen)  # before the members, one of which may be this container
    if isinstance(kept, list):
        kept[:] = [_own(member, seen) for member in value]
    else:
        kept.update((name, _own(member, seen)) for name, member in value.items())
    return kept


def _own_members(value: Any, seen: dict[int, Any]) -> Any:
    """Return a tuple or set of own members."""
    members = [_own(member, seen) for member in value]
    if type(value) is set:
        return set(members)
    if all(a is b for a, b in zip(value, members, strict=True)):
        return value
    return value._make(members) if hasattr(value, "_make") else type(value)(members)
