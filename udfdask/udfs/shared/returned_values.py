"""Check what a plain function returned for a frame, and assign it to results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from udfdask.backends.backend import NUMPY
from udfdask.backends.table import backend_of, in_backend, to_host
from udfdask.base.types import AnyArray, is_lazy
from udfdask.errors import ArgumentValueError, UDFError

Names = tuple[str, ...] | None
"""Names of several results; None for a function with one result."""

_RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
"""Kinds of numbers: each kind can hold the numbers of a lower rank."""


def checked_names(names: Any) -> tuple[str, ...]:
    """Return the names of several results; raise unless they are different names."""
    is_list = isinstance(names, Sequence) and not isinstance(names, str)
    parts = names if is_list else [names]
    wrong = [one for one in parts if not (isinstance(one, str) and one.isidentifier())]
    if wrong or not is_list or len(set(names)) != len(names) or not names:
        hint = f": {wrong[0]!r} is not a name of letters" if wrong else ""
        raise ArgumentValueError(
            f"output_names={names!r} must be a list of names, one or more different names, as in "
            f"('position', 'width'){hint}"
        )
    return tuple(names)


def parts_of(value: Any, names: Names) -> Sequence[Any]:
    """Return the value of each result; None stands for a frame without results."""
    if names is None:
        return (value,)
    if value is None:
        return (None,) * len(names)
    has_parts = isinstance(value, (tuple, list)) or np.ndim(value) > 0
    if has_parts and len(value) == len(names):
        return value  # type: ignore[no-any-return]
    found = f"{len(value)} values" if has_parts else type(value).__name__
    raise UDFError(
        f"the function returned {found}, but output_names={names} needs a tuple, list or array of "
        f"{len(names)} values, one for each name in this order"
    )


def as_sample(value: Any, name: str, names: Names) -> AnyArray:
    """Return the value of a result for a frame of ones as an array of numbers, or raise."""
    if value is None:
        raise UDFError(
            "the function returned None for a frame of ones: add a return statement, or pass "
            "output_shape= and output_dtype= if None stands for frames without a result"
        )
    # the function computed with a lazy parameter; a Delayed has any attribute
    if is_lazy(value) and isinstance(getattr(value, "dtype", None), np.dtype):
        return np.broadcast_to(np.empty((), value.dtype), value.shape)
    try:
        sample = to_host(value)
    except ValueError:  # ragged
        sample = np.empty(0, object)
    if sample.dtype != object:
        return sample
    of = f" (result {name!r})" if names else ""
    raise UDFError(
        f"the function returned {type(value).__name__}{of}, which is not an array of numbers: pass "
        "ragged=True to collect Python objects, or output_names= if it returns several results"
    )


def store(value: Any, result: Any, *, is_any_dtype: bool) -> None:
    """Assign a value to its result; raise if NumPy would have to broadcast or truncate it."""
    is_array = type(value) is type(result) or isinstance(value, np.generic)
    is_same = is_array and value.dtype is result.dtype
    if is_same and (value.shape == result.shape or value.size == result.size == 1):
        result[...] = value
        return
    if value is None:
        if result.dtype.kind not in "fcmM":
            raise UDFError(
                f"the function returned None for this frame, but its result is {result.dtype}, "
                "which has no NaN: pass output_dtype=float"
            )
        result[...] = np.nan if result.dtype.kind in "fc" else np.array("NaT", result.dtype)
        return
    # the function may return an array of another type than that of the buffer
    backend = backend_of(result)
    array = in_backend(value, backend)
    if array.shape != result.shape and not array.size == result.size == 1:
        raise UDFError(
            f"the function returned an array of shape {array.shape} for this frame, but its "
            f"result has the shape {result.shape}: correct output_shape=, or pass ragged=True"
        )
    given, own = (_RANK.get(kind, -1) for kind in (array.dtype.kind, result.dtype.kind))
    if given > own >= 0 and not is_any_dtype:
        raise UDFError(
            f"the function returned {array.dtype} for this frame, but {result.dtype} for a "
            "frame of ones: pass output_dtype="
        )
    if backend is NUMPY and not hasattr(value, "dtype"):
        # NumPy refuses Python numbers that do not fit; as an array, they would wrap
        result.reshape(array.shape)[...] = value
    else:
        result[...] = array.reshape(result.shape)
