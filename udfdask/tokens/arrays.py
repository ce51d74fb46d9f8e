"""Arrays, their elements and their dtypes as plain values."""

from __future__ import annotations

from typing import Any

import numpy as np
from dask.hashing import hash_buffer_hex

_SIMPLE = frozenset("biufcmMSU")
"""Kinds of dtypes of which text such as ``<i4`` says all."""


def dtype_text(dtype: np.dtype[Any]) -> str | None:
    """Return a dtype as text; None if it has fields, metadata or objects."""
    return dtype.str if dtype.kind in _SIMPLE and dtype.metadata is None else None


def array_digest(array: np.ndarray[Any, Any]) -> str:
    """Return a hash of the values in C order, however they lie in memory.

    dask's hashes memory as it is, and gives a square and its transpose the same token.
    """
    if not array.nbytes:
        return ""
    flat = np.ascontiguousarray(array).reshape(-1)
    return str(hash_buffer_hex(flat.view("u1")))
