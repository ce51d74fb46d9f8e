"""Find attributes of a user's UDF that tasks would not see.

Each task makes a new UDF from the parameters that `__init__` passed to `super().__init__`. A new
instance is made here in the same way and compared with the user's. Objects such as models or open
files cannot be compared: they count only where a parameter is not passed on.
"""

from __future__ import annotations

import inspect
from enum import Enum
from pathlib import PurePath
from typing import Any

import numpy as np

from udfdask.plan.declarations import new_instance
from udfdask.udf import UDF
from udfdask.udf.params import is_lazy

_PLAIN = (type(None), bool, int, float, complex, str, bytes, np.generic, Enum, PurePath)
_COMPARED = (*_PLAIN, tuple, list, np.ndarray)

_SMALL = 1 << 16
"""Size in bytes up to which the values of arrays are compared, which takes microseconds."""

_MISSING: Any = object()


def find_lost_attribute(udf: UDF) -> str | None:
    """Return what is wrong with an attribute that tasks would not see, and what to do, or None.

    Attributes that differ in each new instance, such as counters and random seeds, are not lost.
    """
    own = {name: value for name, value in vars(udf).items() if name not in UDF.__annotations__}
    if not own:
        return None  # as in most UDFs: nothing is made
    again = new_instance(type(udf), udf._kwargs)
    forgotten = {*inspect.signature(type(udf)).parameters} - {*udf._kwargs, "args", "kwargs"}
    for name, given in own.items():
        other = _value_in(again, name)
        if other is _MISSING or given is other:
            continue
        # what __init__ allocates and does not fill has other values in each instance
        by_values = bool(forgotten) or name not in vars(again)
        compared = isinstance(given, _COMPARED) and isinstance(other, _COMPARED)
        differs = _parameter(name) in forgotten and not _equal(given, other)
        if compared:
            differs = _differ(given, other, by_values=by_values)
        if not differs:
            continue
        third = _value_in(new_instance(type(udf), udf._kwargs), name)
        # an object that each instance makes anew cannot be compared, only one of another type
        stable = third is other or type(given) is not type(other)
        if compared:
            stable = not _differ(other, third, by_values=True)
        if stable:
            return _in_words(udf, name, given, other)
    return None


def _value_in(udf: UDF, name: str) -> Any:
    """Return the value of an attribute or its default in the class; `_MISSING` if it has none.

    A task that reads an attribute which was only set from outside fails.
    """
    default = inspect.getattr_static(type(udf), name, _MISSING)
    # properties, cached properties and methods are computed from the parameters
    return vars(udf).get(name, _MISSING if hasattr(type(default), "__get__") else default)


def _equal(given: Any, again: Any) -> bool:
    """Return whether two objects of one type say that they are equal; nothing is computed."""
    if is_lazy(given):
        return given is again
    try:
        return type(given) is type(again) and bool(given == again)
    except Exception:  # noqa: BLE001  # users' objects can raise anything
        return False


def _differ(given: Any, again: Any, *, by_values: bool) -> bool:
    """Return whether two values certainly differ: arrays by shape and dtype, or by their values."""
    if given is again or not (isinstance(given, _COMPARED) and isinstance(again, _COMPARED)):
        return False
    if isinstance(given, np.ndarray) and isinstance(again, np.ndarray):
        if given.shape != again.shape or given.dtype != again.dtype:
            return True
        cheap = by_values and given.nbytes <= _SMALL and not given.dtype.hasobject
        return bool(cheap and given.tobytes() != again.tobytes())
    if isinstance(given, (tuple, list)) and isinstance(again, (tuple, list)):
        return len(given) != len(again) or any(
            _differ(a, b, by_values=by_values) for a, b in zip(given, again, strict=True)
        )
    if not (isinstance(given, _PLAIN) and isinstance(again, _PLAIN)):
        return True  # a number and an array
    both_nan = bool(given != given) and bool(again != again)
    return not (both_nan or bool(given == again))


def _in_words(udf: UDF, name: str, given: Any, again: Any) -> str:
    """Return what is wrong with an attribute, and what to do."""
    parameter = _parameter(name)
    remedy = f"pass {parameter}={parameter} to super().__init__ and read self.params.{parameter}"
    if parameter in udf._kwargs:
        remedy = (
            f"make a new UDF with another {parameter}=, which is "
            f"{_shown(udf._kwargs[parameter])}, instead of changing the attribute"
        )
    return (
        f"the attribute {name!r} is {_shown(given)}, but tasks would see {_shown(again)}, because "
        f"each task makes a new UDF from the arguments of super().__init__: {remedy}"
    )


def _parameter(name: str) -> str:
    """Return the likely name of the parameter that an attribute is set from."""
    return name.rpartition("__")[2].strip("_") or name


def _shown(value: Any) -> str:
    """Return the repr of a value in one line, shortened."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
