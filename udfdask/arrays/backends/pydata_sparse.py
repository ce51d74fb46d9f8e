"""Arrays of the package `sparse` as compressed rows, without a copy."""

from __future__ import annotations

import copy
import math
from functools import lru_cache
from typing import Any

import numpy as np

from udfdask.types import AnyArray


def gcxs_to_csr(frames: Any) -> Any:
    """Return a sparse.GCXS array as a scipy.sparse.csr_array without copying anything.

    `frames`, shape (*nav, *sig), is compressed over its first axes, and its indices and pointers
    are both int32 or both int64; the matrix has a row for each frame.
    """
    from scipy.sparse import csr_array

    n_nav = len(frames.compressed_axes)
    shape = (math.prod(frames.shape[:n_nav]), math.prod(frames.shape[n_nav:]))
    matrix = csr_array(shape, dtype=frames.dtype)
    # given to the constructor, indices of eight bytes are copied to four, and it reads them all
    matrix.data, matrix.indices, matrix.indptr = frames.data, frames.indices, frames.indptr
    return matrix


def gcxs_rows(entries: tuple[Any, Any, Any], shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """Return a sparse.GCXS array made of these very arrays: values, indices and pointers.

    It is compressed over `axes`.
    """
    data, indices, indptr = entries
    frames = copy.copy(_empty(shape, axes, data.dtype))
    # given to the constructor, all indices are looked at
    frames.data, frames.indices, frames.indptr = data, indices, indptr
    return frames


@lru_cache(maxsize=64)
def _empty(shape: tuple[int, ...], axes: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Return frames without entries: what the constructor checks takes 0.3 ms, and is the same."""
    import sparse

    pointers = np.zeros(math.prod(shape[axis] for axis in axes) + 1, np.int64)
    nothing = (np.empty(0, dtype), np.empty(0, np.int64), pointers)
    return sparse.GCXS(nothing, shape=shape, compressed_axes=axes)


def is_rows(frames: Any) -> bool:
    """Return whether a sparse.GCXS array is compressed over its first axis alone."""
    return frames.ndim > 1 and tuple(frames.compressed_axes) == (0,)


def like_scipy(indices: AnyArray, starts: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return indices and pointers in the same of the dtypes that SciPy has: int32 or int64.

    The package `sparse` takes any dtype of integers. Arrays in such a dtype are returned as such.
    """
    small = np.dtype(np.int32)
    if indices.dtype == starts.dtype and indices.dtype in (small, np.dtype(np.int64)):
        return indices, starts
    short = all(a.dtype.itemsize < 4 or a.dtype == small for a in (indices, starts))
    dtype = small if short else np.dtype(np.int64)
    return indices.astype(dtype), starts.astype(dtype)
