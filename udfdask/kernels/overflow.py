"""Sums of integers that could overflow, and the dtypes that compiled code supports."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.errors import SumOverflowError

_REPLACEMENTS = {"e": "f4", "g": "f8", "G": "c16"}
"""Replacements for the dtypes that numba does not support: float16 and long double precision."""


def compiled_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the nearest dtype that compiled code supports, in native byte order."""
    return np.dtype(_REPLACEMENTS.get(dtype.char, dtype)).newbyteorder("=")


TOLERANCE = 2.0**62
"""Largest difference from a sum in double precision: rounding stays below, wrapping is above."""


def is_long(dtype: Any) -> bool:
    """Return whether a dtype is a 64-bit integer, whose sums may need more than 64 bits."""
    return dtype.kind in "iu" and dtype.itemsize == 8


def require(fits: bool, dtype: Any) -> None:
    """Raise unless all sums of integers fit their dtype."""
    if not fits:
        raise SumOverflowError(
            f"a sum of integers does not fit {dtype}: convert the data, array.astype('float64'), "
            "or choose a floating dtype if the UDF has such a parameter, as in "
            "SumUDF(dtype='float64')"
        )


def require_near(sums: Any, approximate: Any) -> None:
    """Raise if sums modulo 2**64 differ from the same sums in double precision."""
    require(not (abs(sums.astype(np.float64) - approximate) > TOLERANCE).any(), sums.dtype)


def add_exactly(total: Any, more: Any) -> None:
    """Add sums in place, both in the same dtype; raise if a 64-bit integer overflows."""
    if not is_long(total.dtype):
        with np.errstate(invalid="ignore"):  # infinity of both signs, as in compiled kernels
            total += more
        return
    before = total.copy()
    total += more
    signed = total.dtype.kind == "i"
    wrapped = (before ^ total) & (more ^ total) < 0 if signed else total < more
    require(not wrapped.any(), total.dtype)
