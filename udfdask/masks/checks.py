"""What the mask functions ask of sizes, centres and radii."""

from __future__ import annotations

import math
from operator import index
from typing import Any

from udfdask.errors import ArgumentTypeError, ArgumentValueError


def number(name: str, value: Any, *, finite: bool = True) -> float:
    """Return a real number as a float; a finite one unless told."""
    if hasattr(value, "__dask_graph__"):  # float() would compute it
        raise ArgumentTypeError(
            f"{name} must be a number of pixels, not a lazy {type(value).__name__}: compute it "
            "first"
        )
    try:
        result = float(value)
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"{name} must be a number of pixels, not {value!r} of type {type(value).__name__}"
        ) from None
    if math.isnan(result) or (finite and math.isinf(result)):
        raise ArgumentValueError(f"{name} must be a finite number of pixels, not {value!r}")
    return result


def size(name: str, value: Any) -> int:
    """Return a number of pixels, at least one, as an int."""
    try:
        result = index(value)
    except TypeError:
        raise ArgumentTypeError(
            f"{name} must be an integer number of pixels, not {value!r} of type "
            f"{type(value).__name__}"
        ) from None
    if result < 1:
        raise ArgumentValueError(f"{name} must be at least 1 pixel, not {result}")
    return result


def radius(name: str, value: Any, *, positive: bool = False, finite: bool = True) -> float:
    """Return a radius, not negative, as a float; with `positive`, not zero either."""
    result = number(name, value, finite=finite)
    if result < 0 or (positive and result == 0):
        raise ArgumentValueError(
            f"{name} must be {'positive' if positive else '0 or more pixels'}, not {value!r}"
        )
    return result


def radii(outer: Any, inner: Any, *, finite: bool = True) -> tuple[float, float]:
    """Return an outer and an inner radius of which the inner one is smaller."""
    r, ri = radius("radius", outer, finite=finite), radius("radius_inner", inner)
    if ri >= r:
        raise ArgumentValueError(
            f"radius_inner must be smaller than radius, but {inner!r} >= {outer!r}: radius is the "
            "outer one; swap them or make the ring wider"
        )
    return r, ri


def needs_sparse(what: str) -> Any:
    """Return the package `sparse`, which `what` needs."""
    try:
        import sparse
    except ImportError as error:
        raise ImportError(
            f'{what} needs sparse, which is not installed: pip install "udfdask[sparse]"'
        ) from error
    return sparse
