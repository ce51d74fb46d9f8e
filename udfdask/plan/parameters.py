"""Parameters of UDFs: new instances made of them, copies that a run keeps, and a text for files."""

from __future__ import annotations

import copy
import enum
import inspect
import json
import math
import os
import re
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from udfdask.base.names.naming import tokenize_value
from udfdask.base.tracebacks import add_origin
from udfdask.base.types import AnyArray, is_lazy
from udfdask.errors import without_secrets
from udfdask.geometry.units import Quantity
from udfdask.udf import UDF
from udfdask.udf.aux_data import AuxData

_CONSTANTS = (type(None), int, float, complex, str, bytes, np.generic)
"""Immutable types, checked first: a list may have a million of such values."""

_COMPARED = (*_CONSTANTS, enum.Enum, os.PathLike, tuple, list, np.ndarray)
"""Types of attributes that are compared; objects such as models are left alone."""

_SMALL = 1 << 16
"""Size in bytes up to which the values of arrays are compared, which takes microseconds."""

_LONGEST = 4000
"""About the most characters of a text: attributes in an .npz file have at most 65,535 bytes."""
_LONGEST_VALUE = 200
"""Most characters of a text among the values."""
_MOST_MEMBERS = 16
"""Most members of a list or dictionary that are written."""

_SECRET = re.compile(r"passw|secret|token|credential|(api|access|private)_?key", re.IGNORECASE)

_MISSING: Any = object()


def new_instance(cls: type[UDF], kwargs: Mapping[str, Any]) -> UDF:
    """Return `cls(**kwargs)`: the declaring methods, each chunk and each merge have their own."""
    try:
        return cls(**kwargs)
    except Exception as error:
        add_origin(
            error,
            f"raised by {cls.__name__}(**kwargs), which makes a new instance for each task: a "
            "UDF's __init__ must accept the keyword arguments that it gives to super().__init__",
        )
        raise


def with_parameters(udf: UDF, kwargs: Mapping[str, Any]) -> UDF:
    """Return a UDF with other parameters; itself if they are the ones that it has."""
    own = udf._kwargs
    same = kwargs.keys() == own.keys() and all(kwargs[name] is own[name] for name in own)
    return udf if same else new_instance(type(udf), kwargs)


# Copies. A lazy run reads its parameters when it is computed, perhaps hours later, but its name is
# made from their values now. An array that changes in between would give another result under the
# same name. Functions are not copied: they see the variables that they refer to as these are when
# called.


def with_copied_parameters(udfs: Sequence[UDF]) -> tuple[UDF, ...]:
    """Return UDFs whose parameters do not change if the user changes an array afterwards."""
    memo: dict[int, Any] = {}
    return tuple(with_parameters(udf, copy_parameters(udf._kwargs, memo)) for udf in udfs)


def copy_parameters(given: Mapping[str, Any], memo: dict[int, Any]) -> dict[str, Any]:
    """Return the parameters of a UDF with copies of all values that can change.

    Functions, classes and objects that cannot be copied, such as open files, stay as they are.
    `memo` is that of `copy.deepcopy`: an array that is given twice stays one array.
    """
    return {name: _copy(value, memo) for name, value in given.items()}


def _copy(value: Any, memo: dict[int, Any]) -> Any:
    if isinstance(value, _CONSTANTS):
        return value
    if type(value) is list and all(isinstance(member, _CONSTANTS) for member in value):
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
        for member in value.values() if isinstance(value, dict) else value:
            if not isinstance(member, _CONSTANTS):
                yield from _members(member, (*around, id(value)))


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
    try:
        return copy.deepcopy(value, memo)
    except Exception:  # noqa: BLE001  # classes without copies raise anything
        return value


def _copy_array(array: AnyArray) -> AnyArray:
    """Return a copy in which axes that repeat one value, as of `broadcast_to`, still do."""
    once = tuple(slice(0, 1) if step == 0 else slice(None) for step in array.strides)
    copied = array[once].copy(order="K")
    same = copied.shape == array.shape
    return copied if same else np.broadcast_to(copied, array.shape, subok=True)


def _is_constant(array: Any) -> bool:
    """Return whether nobody can write to an array, or to an array that it is a view of."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    return not isinstance(array, (memoryview, bytearray))


def find_lost_attribute(udf: UDF) -> str | None:
    """Return what is wrong with an attribute that tasks would not see, and what to do, or None.

    A new instance, as each task makes one, is compared with the user's: all numbers, texts and
    small arrays, and objects that seem to be a parameter that was not passed on. Attributes that
    differ in each new instance, such as counters and random seeds, are not lost.
    """
    own = {name: value for name, value in vars(udf).items() if name not in UDF.__annotations__}
    if not own:
        return None  # as in most UDFs: nothing is made
    again = new_instance(type(udf), udf._kwargs)
    forgotten = {*inspect.signature(type(udf)).parameters} - {*udf._kwargs, "args", "kwargs"}
    for name, given in own.items():
        parameter = name.rpartition("__")[2].strip("_") or name
        # what __init__ allocates and does not fill has other values in each instance
        by_values = bool(forgotten) or name not in vars(again)
        other = _attribute(again, name)
        is_plain = isinstance(given, _COMPARED) and isinstance(other, _COMPARED)
        if given is other or other is _MISSING or not (is_plain or parameter in forgotten):
            continue
        seen = tokenize_value(_content(other, by_values))
        if tokenize_value(_content(given, by_values)) == seen:
            continue
        third = _attribute(new_instance(type(udf), udf._kwargs), name)
        if tokenize_value(_content(third, by_values)) != seen:
            continue
        remedy = (
            f"pass {parameter}={parameter} to super().__init__ and read self.params.{parameter}"
        )
        if parameter in udf._kwargs:
            remedy = f"make a new UDF with another {parameter}= instead of changing the attribute"
        return (
            f"the attribute {name!r} is {reprlib.repr(given)}, but tasks would see "
            f"{reprlib.repr(other)}, because each task makes a new UDF from the arguments of "
            f"super().__init__: {remedy}"
        )
    return None


def _attribute(udf: UDF, name: str) -> Any:
    """Return an attribute or its default in the class; `_MISSING` if a task could not read it."""
    default = inspect.getattr_static(type(udf), name, _MISSING)
    # properties, cached properties and methods are computed from the parameters
    return vars(udf).get(name, _MISSING if hasattr(type(default), "__get__") else default)


def _content(value: Any, by_values: bool) -> Any:
    """Return what is compared of an attribute: of most arrays, only shape and dtype."""
    if isinstance(value, (tuple, list)):
        return [_content(member, by_values) for member in value]
    if isinstance(value, np.ndarray) and not (by_values and value.nbytes <= _SMALL):
        return value.shape, value.dtype
    return value


def parameter_text(udf: UDF) -> str:
    """Return the parameters of a UDF as the user gave them: a short JSON text for files of results.

    Parameters that are None are left out. Objects of users are not asked for their `repr`, which
    can be slow, or contain an address in memory.
    """
    given = {k: v for k, v in udf._kwargs.items() if v is not None and not k.startswith("_")}
    return with_changes("{}", given)


def with_changes(text: str, changes: Mapping[str, Any]) -> str:
    """Return the text of parameters, some of which have changed during a run."""
    shown = {**json.loads(text), **_members_in_words(changes, 3)}
    n = len(shown)
    while len(made := json.dumps(shown, ensure_ascii=False)) > _LONGEST:
        shown.pop("...", None)
        shown.popitem()
        shown["..."] = f"and {n - len(shown)} more"
    # names of files can have characters that no file holds as text
    return made.encode("utf-8", "replace").decode()


def _members_in_words(values: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    return {
        str(k)[:_LONGEST_VALUE]: "not saved" if _SECRET.search(str(k)) else _in_words(v, depth)
        for k, v in values.items()
    }


def _in_words(value: Any, depth: int) -> Any:
    """Return a value if JSON holds it and it is short, or else a few words about it."""
    try:
        return _value_or_words(value, depth)
    except Exception:  # noqa: BLE001  # attributes of objects of users raise anything
        return type(value).__name__


def _value_or_words(value: Any, depth: int) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, (str, os.PathLike)):
        text = str(os.fspath(value))
        text = without_secrets(text) if "://" in text else text
        return text if len(text) <= _LONGEST_VALUE else f"text of {len(text):,} characters"
    is_short = isinstance(value, int) and abs(value) < 1 << 64
    if value is None or is_short or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, (int, float, complex, np.dtype, Quantity)):
        return str(value)[:_LONGEST_VALUE]
    if isinstance(value, (dict, list, tuple)):
        if len(value) > _MOST_MEMBERS or not depth:
            return f"{type(value).__name__} of {len(value)} values"
        if isinstance(value, dict):
            return _members_in_words(value, depth - 1)
        return [_in_words(member, depth - 1) for member in value]
    if isinstance(value, enum.Enum):
        return value.name
    value = value.data if isinstance(value, AuxData) else value
    if isinstance(getattr(value, "shape", None), tuple):
        return f"array of shape {value.shape}, {getattr(value, 'dtype', 'no dtype')}"
    name = None if is_lazy(value) else getattr(value, "__name__", None)
    return name if isinstance(name, str) else type(value).__name__
