"""Name arrays, their elements and their dtypes by content."""

from __future__ import annotations

from typing import Any

import numpy as np
from dask.base import tokenize

from udfdask.tokens import origins
from udfdask.tokens.objects import name_instance
from udfdask.tokens.walk import Walk

_SIMPLE = frozenset("biufcmMSU")
"""Kinds of dtypes that a text such as ``<i4`` describes completely."""


def _text(dtype: np.dtype[Any]) -> str | None:
    """Return a dtype as text; None if it has fields, metadata or objects."""
    return dtype.str if dtype.kind in _SIMPLE and dtype.metadata is None else None


def _digest(array: np.ndarray[Any, Any]) -> str:
    """Return a hash of the values in C order, independent of their order in memory.

    dask hashes values in memory order, so a square array and its transpose get the same token.
    """
    if not array.nbytes:
        return ""
    flat = np.ascontiguousarray(array).reshape(-1)
    return tokenize(flat.view("u1"))


def name_ufunc(walk: Walk, ufunc: np.ufunc) -> Any:
    """Name a ufunc of a library."""
    found = origins.ufunc_name(ufunc)
    return walk.unnamed(ufunc) if found is None else ("library", *found)


def name_dtype(walk: Walk, dtype: np.dtype[Any]) -> Any:
    """Name a dtype."""
    return ("dtype", _text(dtype) or name_instance(walk, dtype))


def name_scalar(walk: Walk, scalar: np.generic) -> Any:
    """Name a NumPy scalar."""
    if scalar.dtype.char in "gG":  # long doubles contain unused bytes
        return ("scalar", name_dtype(walk, scalar.dtype), repr(scalar))
    return ("scalar", name_dtype(walk, scalar.dtype), walk.name(np.asarray(scalar).tobytes()))


def name_array(walk: Walk, array: np.ndarray[Any, Any]) -> Any:
    """Name an array by shape, dtype and values; for a subclass, also by its attributes."""
    plain = np.asarray(array) if type(array) is np.ndarray else array.view(np.ndarray)
    named = ("array", plain.shape, name_dtype(walk, plain.dtype))
    simple = type(array) in (np.ndarray, np.memmap)
    if simple and not plain.dtype.hasobject:
        return (*named, _digest(plain))
    again = walk.again(array)
    if again:
        return again
    if plain.dtype.hasobject:
        values = [walk.name(v) for v in plain.ravel().tolist()]
    else:
        values = [_digest(plain)]
    more = None if simple else walk.name(dict(getattr(array, "__dict__", {})))
    return (*named, values, walk.name(type(array)), more)
