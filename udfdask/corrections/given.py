"""Brings what a user gives as a dark frame, a gain map or broken pixels into one form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.types import AnyArray

NUMBERS = "biufc"
"""Kinds of dtypes that can be corrected, and that dark and gain may have."""


def is_lazy(value: Any) -> bool:
    """Return whether a value is a dask collection."""
    graph = getattr(value, "__dask_graph__", None)
    return callable(graph) and graph() is not None


def _unwrapped(value: Any) -> Any:
    """Return the dask array inside a labelled one; anything else as it is."""
    inner = None if isinstance(value, np.ndarray) else getattr(value, "data", None)
    return inner if is_lazy(inner) and hasattr(inner, "chunks") else value


def _dense(value: Any) -> Any:
    """Return the NumPy array of a sparse one; anything else as it is."""
    for method in ("toarray", "todense"):
        if not isinstance(value, np.ndarray) and hasattr(value, method):
            return getattr(value, method)()
    return value


def plane_given(name: str, value: Any) -> Any:
    """Return a private array of numbers in native byte order, or a dask array; None for None."""
    if value is None:
        return None
    value = _unwrapped(value)
    if is_lazy(value):
        if not isinstance(getattr(value, "chunks", None), tuple):
            raise ArgumentTypeError(
                f"{name} must be a NumPy, dask or sparse array, not a {type(value).__name__}: "
                "make a dask array of it, with dask.array.from_delayed for a Delayed"
            )
        if any(math.isnan(n) for n in value.shape):
            raise ArgumentValueError(
                f"{name} is a dask array of unknown shape {value.shape}: call "
                "compute_chunk_sizes() on it first"
            )
        _refuse_masked(name, value._meta, f"dask.array.ma.filled({name}, 0)")
        array = value
    else:
        _refuse_masked(name, value, f"{name}.filled(0)")
        array = _array(name, _dense(value))
    if array.dtype.kind not in NUMBERS:
        raise ArgumentTypeError(f"{name} must hold numbers, not {array.dtype}")
    if array is value and is_lazy(value):
        return value
    return np.array(array, dtype=array.dtype.newbyteorder("="), order="C")


def _refuse_masked(name: str, value: Any, remedy: str) -> None:
    """Raise if an array, or the empty one that stands for blocks, has a mask."""
    if isinstance(value, np.ma.MaskedArray):
        raise ArgumentTypeError(
            f"{name} is a masked array: pass {remedy}, and its mask as excluded_pixels"
        )


def _array(name: str, value: Any) -> AnyArray:
    """Return a NumPy array of what is no array of ragged lists."""
    try:
        return np.asarray(value)
    except ValueError as error:
        raise ArgumentTypeError(f"{name} cannot be made an array: {error}") from None


def excluded_given(value: Any) -> AnyArray | None:
    """Return a boolean mask of shape sig, or coordinates, int64; None for None."""
    if value is None:
        return None
    if is_lazy(_unwrapped(value)):
        raise ArgumentTypeError(
            "excluded_pixels must be known when the run is planned, as tiles are chosen by them: "
            "compute them first"
        )
    dense = _dense(value)
    array = _array("excluded_pixels", dense)
    if dense is not value:
        array = array != 0
    if array.size == 0 and array.dtype.kind == "f":  # of an empty list
        array = array.astype(np.int64)
    if array.dtype.kind not in "biu":
        raise ArgumentTypeError(
            "excluded_pixels must be a boolean mask, a sparse array or integer coordinates, not "
            f"{array.dtype}"
        )
    return np.array(array, dtype=bool if array.dtype == bool else np.int64, order="C")


def excluded_coordinates(excluded: AnyArray, sig: tuple[int, ...]) -> AnyArray:
    """Return where in a frame pixels are excluded, int64, (sig dims, pixels), in C order."""
    if excluded.dtype == bool:
        if excluded.shape != sig:
            raise ArgumentValueError(
                f"excluded_pixels has shape {excluded.shape}, but frames have shape {sig}"
            )
        return np.array(np.nonzero(excluded), dtype=np.int64)
    places = excluded
    if places.ndim == 1:  # one pixel, or pixels along the only axis
        places = places.reshape((1, -1)) if len(sig) == 1 else places.reshape((-1, 1))
    if excluded.size == 0:
        return np.zeros((len(sig), 0), dtype=np.int64)
    if places.ndim != 2 or len(places) != len(sig):
        hint = "; make a mask boolean, with .astype(bool)" if excluded.shape == sig else ""
        raise ArgumentValueError(
            f"excluded_pixels has shape {excluded.shape}, but for frames of shape {sig} expected "
            f"a boolean mask of that shape, or coordinates of shape ({len(sig)}, pixels){hint}"
        )
    outside = (places < 0).any(axis=0) | (places >= np.reshape(sig, (-1, 1))).any(axis=0)
    if outside.any():
        first = tuple(places[:, outside][:, 0].tolist())
        raise ArgumentValueError(
            f"excluded_pixels holds pixel {first}, which is outside of frames of shape {sig}"
        )
    flat = np.unique(np.ravel_multi_index(tuple(places), sig))
    return np.array(np.unravel_index(flat, sig), dtype=np.int64)
