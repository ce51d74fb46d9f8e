"""Arrays of the package `sparse` as compressed rows, without a copy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


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
    import sparse

    data, indices, indptr = entries
    nothing = (data[:0], indices[:0], np.zeros_like(indptr))
    frames = sparse.GCXS(nothing, shape=shape, compressed_axes=axes)
    # given to the constructor, all indices are looked at
    frames.data, frames.indices, frames.indptr = data, indices, indptr
    return frames


def is_rows(frames: Any) -> bool:
    """Return whether a sparse.GCXS array is compressed over its first axis alone."""
    return frames.ndim > 1 and tuple(frames.compressed_axes) == (0,)
