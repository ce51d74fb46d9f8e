"""Buffers that find out when a value is lost as it is assigned to them."""

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
"""What to do, by the kind of values that an integer or floating buffer loses."""

EXACT = frozenset({np.add, np.subtract, np.multiply})
"""Functions whose results on integers are looked at: with Python's integers they are exact."""


class CheckedBuffer(np.ndarray):
    """An array that raises if what is assigned to it does not survive.

    Rounding to another precision of a floating dtype is intended. A number that wraps around, a
    fraction that is cut off, NaN in an integer, a finite number that becomes infinite, an
    imaginary part and the end of a string are lost. What compiled code writes is not seen.
    """

    buffer_name: str

    def __array_finalize__(self, source: Any) -> None:
        self.buffer_name = getattr(source, "buffer_name", "")

    def __setitem__(self, index: Any, value: Any) -> None:
        plain = self.view(np.ndarray)
        given = _plain(value)
        plain[index] = given
        _check(self.buffer_name, given, plain[index], plain.dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Compute on plain arrays; sums, differences and products of integers must not wrap."""
        out = kwargs.pop("out", ())
        given = [_plain(x) for x in inputs]
        exact = None
        if ufunc in EXACT and method == "__call__" and all(_is_whole(x) for x in given):
            exact = ufunc(*(np.asarray(x).astype(object) for x in given))
        if out:
            kwargs["out"] = tuple(_plain(x) for x in out)
        found = getattr(ufunc, method)(*given, **kwargs)
        if exact is not None:
            name = next(x.buffer_name for x in (*out, *inputs) if isinstance(x, CheckedBuffer))
            _check(name, np.asarray(exact), np.asarray(found), np.asarray(found).dtype)
        return out[0] if out and len(out) == 1 else found


def checked(name: str, array: AnyArray) -> AnyArray:
    """Return a view of a buffer that finds out what it loses."""
    view = array.view(CheckedBuffer)
    view.buffer_name = name
    return view


def check_cast(name: str, value: Any, stored: AnyArray) -> None:
    """Raise if values of a result that `get_results` returned do not survive in its dtype."""
    _check(name, np.asarray(value), stored, stored.dtype)


def _plain(value: Any) -> Any:
    """Return an array without checks; anything else as it is."""
    return value.view(np.ndarray) if isinstance(value, CheckedBuffer) else value


def _is_whole(value: Any) -> bool:
    """Return whether these are integers."""
    return np.asarray(value).dtype.kind in "iu"


def _check(name: str, value: Any, stored: Any, dtype: np.dtype[Any]) -> None:
    """Raise if something is lost of values of which `stored` is left in a buffer of a dtype."""
    try:
        given = np.asarray(value)
    except ValueError:  # nested lists of objects
        return
    survives = _survival(given.dtype, dtype)
    if survives is None or not given.size:
        return
    given, kept = np.broadcast_arrays(given, stored)
    with np.errstate(all="ignore"):
        bad = ~survives(given, kept)
    if bad.any():
        one, left = given[bad].flat[0], kept[bad].flat[0]
        remedy = REMEDY.get(given.dtype.kind, f"declare a wider dtype than {dtype}")
        raise UDFCheckError(
            f"buffer {name!r} of dtype {dtype} does not hold what is assigned to it: {one} becomes "
            f"{left}. {remedy[0].upper()}{remedy[1:]}"
        )


def _survival(given: np.dtype[Any], dtype: np.dtype[Any]) -> Callable[[Any, Any], Any] | None:
    """Return a function of values and what is left of them that says which survive; None for all.

    Anything may be made a truth value, and objects stay as they are.
    """
    kinds = given.kind + dtype.kind
    if dtype.kind in "bOVmM" or given == dtype:
        return None
    if dtype.kind in "iu" and given.kind in "iufcO":
        return lambda value, left: np.asarray(value == left, dtype=bool)
    if kinds in ("cf", "ff", "fc", "cc"):
        return _without_overflow
    if kinds in ("SS", "UU"):
        return lambda value, left: np.asarray(value == left, dtype=bool)
    return None


def _without_overflow(value: AnyArray, left: AnyArray) -> AnyArray:
    """Return which numbers are still finite if they were, and as complex as they were."""
    real = left.dtype.kind == "c" or value.dtype.kind == "f"
    survives: AnyArray = (np.isfinite(left) | ~np.isfinite(value)) & (real | (value.imag == 0))
    return survives
