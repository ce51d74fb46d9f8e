"""Provide buffers that raise if an assigned value is lost, for example because it wraps around."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from udfdask.testing.failures import UDFCheckError
from udfdask.types import AnyArray

REMEDY = {
    "c": "declare a complex dtype, or take .real on purpose",
    "f": "declare a floating dtype, or round on purpose, as with np.rint(...).astype(...)",
}
"""Remedies for the message, by the kind of dtype of the assigned values."""

EXACT = frozenset({np.add, np.subtract, np.multiply})
"""Functions on integers that are also computed exactly, with Python's integers, to compare."""


class CheckedBuffer(np.ndarray):
    """An array that raises if an assigned value is lost.

    Rounding to another precision of a floating dtype is allowed. Lost are: a number that wraps
    around, a fraction that is cut off, NaN in an integer, a finite number that becomes infinite, an
    imaginary part, and the end of a string. Values that compiled code writes are not checked.
    """

    buffer_name: str

    def __array_finalize__(self, source: Any) -> None:
        self.buffer_name = getattr(source, "buffer_name", "")

    def __setitem__(self, index: Any, value: Any) -> None:
        plain = self.view(np.ndarray)
        value = _plain(value)
        plain[index] = value
        _check(self.buffer_name, value, plain[index], plain.dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Compute on plain arrays; sums, differences and products of integers must not wrap."""
        out = kwargs.pop("out", ())
        given = [_plain(x) for x in inputs]
        exact = None
        if (
            ufunc in EXACT
            and method == "__call__"
            and all(np.asarray(x).dtype.kind in "iu" for x in given)
        ):
            exact = ufunc(*(np.asarray(x).astype(object) for x in given))
        if out:
            kwargs["out"] = tuple(_plain(x) for x in out)
        result = getattr(ufunc, method)(*given, **kwargs)
        if exact is not None:
            name = next(x.buffer_name for x in (*out, *inputs) if isinstance(x, CheckedBuffer))
            _check(name, np.asarray(exact), np.asarray(result), np.asarray(result).dtype)
        return out[0] if out and len(out) == 1 else result


def checked(name: str, array: AnyArray) -> AnyArray:
    """Return a view of a buffer that raises if an assigned value is lost."""
    view = array.view(CheckedBuffer)
    view.buffer_name = name
    return view


def check_cast(name: str, value: Any, stored: AnyArray) -> None:
    """Raise if a value that `get_results` returned is lost in the dtype of the result."""
    _check(name, np.asarray(value), stored, stored.dtype)


def _plain(value: Any) -> Any:
    """Return a checked buffer as a plain array, and any other value unchanged."""
    return value.view(np.ndarray) if isinstance(value, CheckedBuffer) else value


def _check(name: str, value: Any, stored: Any, dtype: np.dtype[Any]) -> None:
    """Raise if `stored`, in a buffer of a dtype, is not what was assigned."""
    try:
        assigned = np.asarray(value)
    except ValueError:  # nested lists of objects
        return
    survives = _survival(assigned.dtype, dtype)
    if survives is None or not assigned.size:
        return
    assigned, kept = np.broadcast_arrays(assigned, stored)
    with np.errstate(all="ignore"):
        lost = ~survives(assigned, kept)
    if lost.any():
        before, after = assigned[lost].flat[0], kept[lost].flat[0]
        remedy = REMEDY.get(assigned.dtype.kind, f"declare a wider dtype than {dtype}")
        raise UDFCheckError(
            f"buffer {name!r} of dtype {dtype} does not hold the assigned value: {before} becomes "
            f"{after}. {remedy[0].upper()}{remedy[1:]}"
        )


def _survival(assigned: np.dtype[Any], dtype: np.dtype[Any]) -> Callable[[Any, Any], Any] | None:
    """Return a function that says which assigned values are not lost in a dtype.

    It takes the assigned and the stored values. Return None if no value can be lost: a boolean
    buffer keeps truth values on purpose, and objects are stored unchanged.
    """
    kinds = assigned.kind + dtype.kind
    if dtype.kind in "bOVmM" or assigned == dtype:
        return None
    if (dtype.kind in "iu" and assigned.kind in "iufcO") or kinds in ("SS", "UU"):
        return lambda values, stored: np.asarray(values == stored, dtype=bool)
    if kinds in ("cf", "ff", "fc", "cc"):
        return _stays_finite
    return None


def _stays_finite(values: AnyArray, stored: AnyArray) -> AnyArray:
    """Return which finite numbers are finite in `stored`, with their imaginary parts."""
    keeps_imaginary = stored.dtype.kind == "c" or values.dtype.kind == "f"
    survives: AnyArray = (np.isfinite(stored) | ~np.isfinite(values)) & (
        keeps_imaginary | (values.imag == 0)
    )
    return survives
