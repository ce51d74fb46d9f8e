"""The dtype of a sum."""

from __future__ import annotations

from typing import Any

import numpy as np


def sum_dtype(data: np.dtype[Any], asked: Any = None) -> np.dtype[Any]:
    """Return the dtype of a sum over data: the one asked for, or NumPy's own choice."""
    dtype: np.dtype[Any] = np.dtype(asked) if asked is not None else np.zeros(1, data).sum().dtype
    return dtype
