"""The dtypes that compiled code supports."""

from __future__ import annotations

from typing import Any

import numpy as np

_REPLACEMENTS = {"e": "f4", "g": "f8", "G": "c16"}
"""Replacements for the dtypes that numba does not support: float16 and long double precision."""


def compiled_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the nearest dtype that compiled code supports, in native byte order."""
    return np.dtype(_REPLACEMENTS.get(dtype.char, dtype)).newbyteorder("=")
