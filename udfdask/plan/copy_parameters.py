"""Copy the parameters of a run, so that later changes of the user's arrays do not reach it.

A lazy run reads its parameters when it is computed, perhaps hours later, but its name is made from
their values now. An array that changes in between would give another result under the same name.
Functions are not copied: they see the variables that they refer to as these are when called.
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
from udfdask.udf.params import is_lazy, lazy_places, member_at

CONSTANTS = (type(None), int, float, complex, str, bytes, np.generic)
"""Immutable types, checked first: a list may have a million of such values."""


def copy_parameters(given: Mapping[str, Any], memo: dict[int, Any]) -> dict[str, Any]:
    """Return the parameters of a UDF with copies of all values that can change.

    Functions and classes, and objects that cannot be copied, such as open files, stay as they are.
    `memo` has the copy of each value, by the id of the value, as in `copy.deepcopy`: an array that
    is given twice stays one array. The function adds to it.
    """
    return {name: _copy(value, memo) for name, value in given.items()}


def _copy(value: Any, memo: dict[int, Any]) -> Any:
    """Return a value, or a copy if it can change."""
    if isinstance(value, CONSTANTS) or is_lazy(value):
        return value
    if id(value) in memo:
        return memo[id(value)]
    copied: Any
    if isinstance(value, AuxData):
        data = _copy(value.data, memo)
        copied = value if data is value.data else replace(value, data=data)
    elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
        copied = _copy_array(value)
    elif isinstance(value, dict) or type(value) is list:
        return _copy_container(value, memo)
    elif type(value) in {tuple, set, frozenset} or hasattr(type(value), "_make"):
        copied = _copy_members(value, memo)
    elif is_arraylike(value) and hasattr(value, "copy") and not isinstance(value, np.ndarray):
        copied = value.copy()
    else:
        copied = _copy_object(value, memo)
    return _remember(value, copied, memo)


def _remember(value: Any, copied: Any, memo: dict[int, Any]) -> Any:
    """Note the copy of a value, which other parameters may contain as well; return the copy."""
    memo[id(value)] = copied
    # as `copy.deepcopy` does, keep the value alive: no other object may get its id
    memo.setdefault(id(memo), []).append(value)
    return copied


def _copy_object(value: Any, memo: dict[int, Any]) -> Any:
    """Return a deep copy of an object, or itself if it cannot be copied."""
    own = type(value).__module__.startswith("udfdask.")
    if own and not isinstance(value, np.ndarray):  # all of those are immutable
        return value
    for place in lazy_places(value):
        collection = member_at(value, place)
        _remember(collection, collection, memo)
    try:
        if isinstance(value, memoryview):
            return np.array(value).data
        if isinstance(value, MappingProxyType):
            return MappingProxyType(_copy(dict(value), memo))
        return copy.deepcopy(value, memo)
    except Exception:  # noqa: BLE001  # classes without copies raise anything
        return value


def _copy_array(array: AnyArray) -> AnyArray:
    """Return an array, or a copy if its memory is writable.

    Axes that repeat one value, as in a result of `numpy.broadcast_to`, stay one value in memory.
    """
    if not _is_writable(array):
        return array
    once = tuple(slice(0, 1) if step == 0 else slice(None) for step in array.strides)
    copied = array[once].copy(order="K")
    if copied.shape == array.shape:
        return copied
    return np.broadcast_to(copied, array.shape, subok=True)


def _is_writable(array: Any) -> bool:
    """Return whether an array is writable, or an array that it is a view of."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return True
        array = array.base
    return isinstance(array, (memoryview, bytearray))


def _copy_container(value: Any, memo: dict[int, Any]) -> Any:
    """Return a list or dictionary of copied members."""
    copied = copy.copy(value)  # a subclass of dict stays one
    _remember(value, copied, memo)  # before the members, one of which may be this container
    if isinstance(copied, list):
        copied[:] = [_copy(member, memo) for member in value]
    else:
        copied.update((name, _copy(member, memo)) for name, member in value.items())
    return copied


def _copy_members(value: Any, memo: dict[int, Any]) -> Any:
    """Return a tuple or set of copied members."""
    members = [_copy(member, memo) for member in value]
    if type(value) is set:
        return set(members)
    if all(a is b for a, b in zip(value, members, strict=True)):
        return value
    return value._make(members) if hasattr(value, "_make") else type(value)(members)
