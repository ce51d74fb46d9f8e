"""Find attributes of a user's UDF that tasks would not see.

Each task makes a new UDF from the parameters that `__init__` passed to `super().__init__`. A new
instance is made here in the same way and compared with the user's. Plain values are compared:
numbers, texts, None, tuples and lists of them, and NumPy arrays. Other objects, such as models,
generators or open files, cannot be compared cheaply and are left alone.
"""

from __future__ import annotations

import inspect
import itertools
from enum import Enum
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np

from udfdask.errors import ArgumentValueError
from udfdask.plan.declarations import new_instance
from udfdask.udf import UDF
from udfdask.udf.params import is_lazy

_PLAIN = (type(None), bool, int, float, complex, str, bytes, np.generic, Enum, PurePath)
_COMPARED = (*_PLAIN, tuple, list, np.ndarray)

_SMALL = 1 << 16
"""Size in bytes up to which the values of arrays are compared, which takes microseconds."""

_FEW = 256
"""Number of members of lists and tuples that are compared."""

_OF_RUNS = frozenset(UDF.__annotations__)
"""Attributes that the run sets: params, meta, results, task_data."""


class LostAttribute(NamedTuple):
    """An attribute that has another value in the instances of tasks."""

    name: str
    """Name of the attribute."""
    given: Any
    """Value in the user's instance."""
    again: Any
    """Value in an instance that is made from the parameters."""


def check_attributes(udf: UDF) -> None:
    """Raise if an attribute of a UDF has another value in the instances that tasks make."""
    if lost := find_lost_attribute(udf):
        raise ArgumentValueError(f"{type(udf).__name__}: {in_words(lost, udf)}")


def in_words(lost: LostAttribute, udf: UDF) -> str:
    """Return what is wrong with an attribute, and what to do."""
    name, parameter = lost.name, _parameter(lost.name)
    if parameter in udf._kwargs:
        remedy = (
            f"make a new UDF with another {parameter}=, which is "
            f"{_shown(udf._kwargs[parameter])}, instead of changing the attribute"
        )
    else:
        remedy = (
            f"pass {parameter}={parameter} to super().__init__ and read self.params.{parameter}"
        )
    return (
        f"the attribute {name!r} is {_shown(lost.given)}, but tasks would see "
        f"{_shown(lost.again)}, because each task makes a new UDF from the arguments of "
        f"super().__init__: {remedy}"
    )


def _parameter(name: str) -> str:
    """Return the likely name of the parameter that an attribute holds: thr for _thr and __thr."""
    return name.rpartition("__")[2].strip("_") or name


def _shown(value: Any) -> str:
    """Return a value as a short text."""
    if isinstance(value, np.ndarray) and value.size > 8:
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 60 else text[:57] + "..."


def find_lost_attribute(udf: UDF) -> LostAttribute | None:
    """Return an attribute that is not made again from the parameters; None if there is none.

    Attributes that differ in each new instance, such as counters and random seeds, are not lost
    parameters: a UDF may have them.
    """
    own = {name: value for name, value in vars(udf).items() if name not in _OF_RUNS}
    if not own:
        return None  # as in most UDFs: nothing is made
    again = new_instance(type(udf), udf._kwargs)
    forgotten = _forgotten_parameters(udf)
    for name, given in own.items():
        other = _value_again(again, name)
        if given is other or other is _MISSING:
            continue
        # what __init__ allocates and does not fill has other values in each instance
        by_values = bool(forgotten) or name not in vars(again)
        compared = isinstance(given, _COMPARED) and isinstance(other, _COMPARED)
        if compared:
            differs = _differ(given, other, by_values=by_values)
        else:
            differs = _parameter(name) in forgotten and not _equal(given, other)
        if not differs:
            continue
        third = _value_again(new_instance(type(udf), udf._kwargs), name)
        # an object that each instance makes anew cannot be compared, only one of another type
        stable = compared or third is other or type(given) is not type(other)
        if stable and not _differ(other, third, by_values=True):
            return LostAttribute(name, given, other)
    return None


_MISSING: Any = object()


def _value_again(again: UDF, name: str) -> Any:
    """Return the value of an attribute in a new instance; `_MISSING` if tasks see none.

    An attribute that was only set from outside is an error in the task that reads it, unless the
    class has a default.
    """
    if name in vars(again):
        return vars(again)[name]
    default = inspect.getattr_static(type(again), name, _MISSING)
    # properties, cached properties and methods are computed from the parameters
    return _MISSING if hasattr(type(default), "__get__") else default


def _forgotten_parameters(udf: UDF) -> set[str]:
    """Return the parameters of `__init__` that did not reach `super().__init__`."""
    every = inspect.signature(type(udf)).parameters
    return {*every} - {*udf._kwargs} - {"args", "kwargs"}


def _equal(given: Any, again: Any) -> bool:
    """Return whether two objects of one type say that they are equal; nothing is computed."""
    if is_lazy(given):
        return given is again
    try:
        return type(given) is type(again) and bool(given == again)
    except Exception:  # noqa: BLE001  # users' objects can raise anything
        return False


def _differ(given: Any, again: Any, *, by_values: bool) -> bool:
    """Return whether two values certainly differ; False if they cannot be compared cheaply.

    Arrays are compared by shape and dtype, small ones with `by_values` also by their values.
    """
    if given is again or not (isinstance(given, _COMPARED) and isinstance(again, _COMPARED)):
        return False
    if isinstance(given, np.ndarray) and isinstance(again, np.ndarray):
        if given.shape != again.shape or given.dtype != again.dtype:
            return True
        cheap = by_values and given.nbytes <= _SMALL and not given.dtype.hasobject
        return bool(cheap and given.tobytes() != again.tobytes())
    if isinstance(given, (tuple, list)) and isinstance(again, (tuple, list)):
        pairs = zip(given, again, strict=False)
        return len(given) != len(again) or any(
            _differ(a, b, by_values=by_values) for a, b in itertools.islice(pairs, _FEW)
        )
    if not (isinstance(given, _PLAIN) and isinstance(again, _PLAIN)):
        return True  # a number and an array
    both_nan = bool(given != given) and bool(again != again)
    return not (both_nan or bool(given == again))
