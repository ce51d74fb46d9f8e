"""The dtypes that compiled code knows."""

from __future__ import annotations

from typing import Any

import numpy as np

_OTHERS = {"e": "f4", "g": "f8", "G": "c16"}
"""Codes of the numbers that numba does not know, with those that stand in for them."""


def compiled_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which numbers go into compiled code, in native byte order.

    It is their own, but float32 for float16 and double for long double precision.
    """
    return np.dtype(_OTHERS.get(dtype.char, dtype)).newbyteorder("=")
