"""Copy the parameters of a run, so that later changes of the user's arrays do not reach it.

A lazy run reads its parameters when it is computed, perhaps hours later, but its name is made from
their values now. An array that changes in between would give another result under the same name.
Functions are not copied: they see the variables that they refer to as these are when called.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from udfdask.plan.declarations import new_instance
from udfdask.types import AnyArray
from udfdask.udf import UDF
from udfdask.udf.aux_data import AuxData
from udfdask.udf.params import is_lazy

CONSTANTS = (type(None), int, float, complex, str, bytes, np.generic)
"""Immutable types, checked first: a list may have a million of such values."""


def with_copied_parameters(udfs: Sequence[UDF]) -> tuple[UDF, ...]:
    """Return UDFs whose parameters do not change if the user changes an array afterwards."""
    memo: dict[int, Any] = {}
    copies = [copy_parameters(udf._kwargs, memo) for udf in udfs]
    return tuple(
        udf
        if all(kwargs[name] is value for name, value in udf._kwargs.items())
        else new_instance(type(udf), kwargs)
        for udf, kwargs in zip(udfs, copies, strict=True)
    )


def copy_parameters(given: Mapping[str, Any], memo: dict[int, Any]) -> dict[str, Any]:
    """Return the parameters of a UDF with copies of all values that can change.

    Functions and classes, and objects that cannot be copied, such as open files, stay as they are.
    `memo` is that of `copy.deepcopy`: an array that is given twice stays one array. The function
    adds to it.
    """
    return {name: _copy(value, memo) for name, value in given.items()}


def _copy(value: Any, memo: dict[int, Any]) -> Any:
    """Return a value, or a copy if it can change."""
    if isinstance(value, CONSTANTS):
        return value
    if type(value) is list and all(isinstance(member, CONSTANTS) for member in value):
        return value.copy()  # a deep copy of a million numbers takes three times as long
    for member in _members(value, ()):
        if id(member) not in memo:
            memo[id(member)] = _copy_member(member, memo)
            # as `copy.deepcopy` does, keep the member alive: no other object may get its id
            memo.setdefault(id(memo), []).append(member)
    return _deep_copy(value, memo)


def _members(value: Any, around: tuple[int, ...]) -> Iterator[Any]:
    """Yield the values in lists, tuples and dictionaries that can change, or the value itself."""
    if not isinstance(value, (dict, list, tuple)):
        yield value
    elif id(value) not in around:  # a list may contain itself
        inside = (*around, id(value))
        for member in value.values() if isinstance(value, dict) else value:
            if not isinstance(member, CONSTANTS):
                yield from _members(member, inside)


def _copy_member(value: Any, memo: dict[int, Any]) -> Any:
    """Return a copy of a value that is not a list, tuple or dictionary."""
    if isinstance(value, AuxData):
        data = _copy(value.data, memo)
        return value if data is value.data else replace(value, data=data)
    if isinstance(value, MappingProxyType):  # views, which deepcopy refuses
        return MappingProxyType(_copy(dict(value), memo))
    if isinstance(value, memoryview):
        return np.array(value).data
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return value if _is_constant(value) else _copy_array(value)
    if is_lazy(value) or type(value).__module__.startswith("udfdask."):  # they never change
        return value
    return _deep_copy(value, memo)


def _deep_copy(value: Any, memo: dict[int, Any]) -> Any:
    """Return a deep copy of an object, or itself if it cannot be copied."""
    try:
        return copy.deepcopy(value, memo)
    except Exception:  # noqa: BLE001  # classes without copies raise anything
        return value


def _copy_array(array: AnyArray) -> AnyArray:
    """Return a copy of an array.

    Axes that repeat one value, as in a result of `numpy.broadcast_to`, stay one value in memory.
    """
    once = tuple(slice(0, 1) if step == 0 else slice(None) for step in array.strides)
    copied = array[once].copy(order="K")
    if copied.shape == array.shape:
        return copied
    return np.broadcast_to(copied, array.shape, subok=True)


def _is_constant(array: Any) -> bool:
    """Return whether nobody can write to an array, or to an array that it is a view of."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    return not isinstance(array, (memoryview, bytearray))
