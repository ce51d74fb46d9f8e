"""Check sizes, centers and radii that are passed to the mask functions."""

from __future__ import annotations

import math
from operator import index
from typing import Any, NoReturn

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError, missing_package

PIXELS = "a number of pixels"


def number(name: str, value: Any, *, finite: bool = True, of: str = PIXELS) -> float:
    """Return a real number as a float; raise if it is not finite, unless `finite` is False."""
    what = type(value).__name__
    if hasattr(value, "__dask_graph__"):  # float() would compute it
        raise ArgumentTypeError(f"{name} must be {of}, not a lazy {what}: compute it")
    try:
        result = float("" if isinstance(value, (bool, np.bool_)) else value)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"{name} must be {of}, not {value!r} of type {what}") from None
    if math.isnan(result) or (finite and math.isinf(result)):
        wanted = "a finite number of pixels" if of == PIXELS else f"finite, {of}"
        raise ArgumentValueError(f"{name} must be {wanted}, not {value!r}")
    return result


def integer(name: str, value: Any, *, least: int, of: str = "an integer") -> int:
    """Return an int; raise if a value is not an integer of at least `least`."""
    given: Any = None if isinstance(value, (bool, np.bool_)) else value
    try:
        result = index(given)
    except TypeError:
        raise ArgumentTypeError(f"{name} must be {of}, not {value!r}") from None
    if result < least:
        bound = f"at least {least}" if least else "0 or more"
        raise ArgumentValueError(f"{name} must be {bound}, not {result}")
    return result


def pair(name: str, value: Any, of: str) -> tuple[Any, Any]:
    """Return the two members of a pair; raise if a value is not a pair."""
    try:
        first, second = value
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"{name} must be {of}, not {value!r}") from None
    return first, second


def size(name: str, value: Any) -> int:
    """Return a number of pixels, at least one."""
    return integer(name, value, least=1, of="an integer number of pixels")


def dtype(value: Any) -> np.dtype[Any]:
    """Return a NumPy dtype; raise if a parameter is not one."""
    try:
        found: np.dtype[Any] = np.dtype(value)
    except TypeError as error:
        raise ArgumentTypeError(f"dtype {value!r} is not a NumPy dtype: {error}") from None
    return found


def radius(name: str, value: Any, *, positive: bool = False, finite: bool = True) -> float:
    """Return a radius as a float; raise if it is negative, or with `positive` if it is zero."""
    result = number(name, value, finite=finite)
    if result < 0 or (positive and result == 0):
        raise ArgumentValueError(
            f"{name} must be {'positive' if positive else '0 or more pixels'}, not {value!r}"
        )
    return result


def radii(
    outer: Any,
    inner: Any,
    *,
    names: tuple[str, str] = ("radius", "radius_inner"),
    finite: bool = True,
) -> tuple[float, float]:
    """Return an outer and an inner radius; raise if the inner radius is not smaller."""
    r, ri = radius(names[0], outer, finite=finite), radius(names[1], inner)
    if ri >= r:
        raise_swapped(outer, inner, names=names)
    return r, ri


def raise_swapped(outer: Any, inner: Any, *, names: tuple[str, str]) -> NoReturn:
    """Raise the error about an inner radius that is not smaller than the outer one."""
    raise ArgumentValueError(
        f"{names[1]} must be smaller than {names[0]}, but {inner!r} >= {outer!r}: swap them"
    )


def needs_sparse(what: str) -> Any:
    """Return the package `sparse`, which `what` needs."""
    try:
        import sparse
    except ImportError:
        raise missing_package("sparse", purpose=what, extra="sparse") from None
    return sparse
