"""Finds sums of 64-bit integers that have wrapped around, on NumPy and CuPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.errors import SumOverflowError

ROOM = 2.0**62
"""How far a sum that fits may be from one in double precision; a wrapped one is farther off."""

REMEDY = (
    "convert the data, array.astype('float64'), or ask for a floating dtype where there is one, as "
    "in SumUDF(dtype='float64')"
)


def is_long(dtype: Any) -> bool:
    """Return whether sums of values of a dtype may need more than 64 bits."""
    return dtype.kind in "iu" and dtype.itemsize == 8


def require(fits: bool, dtype: Any) -> None:
    """Raise if sums of integers of a dtype do not fit it."""
    if not fits:
        raise SumOverflowError(f"a sum of integers does not fit {dtype}: {REMEDY}")


def require_near(sums: Any, approximate: Any) -> None:
    """Raise if sums, modulo 2**64, are not those that have been added up in double precision."""
    require(not (abs(sums.astype(np.float64) - approximate) > ROOM).any(), sums.dtype)


def add_exactly(total: Any, more: Any) -> None:
    """Add sums to others, both of one dtype; raise if integers of 64 bits do not fit them."""
    if not is_long(total.dtype):
        total += more
        return
    before = total.copy()
    total += more
    signed = total.dtype.kind == "i"
    wrapped = (before ^ total) & (more ^ total) < 0 if signed else total < more
    require(not wrapped.any(), total.dtype)
