"""Take frames out of arrays of the package `sparse`, without copies where possible."""

from __future__ import annotations

import copy
import math
from functools import lru_cache
from typing import Any

import numpy as np

from udfdask.types import AnyArray


def coo_starts(frames: Any) -> AnyArray:
    """Return the index of the first entry of each frame, then the number of entries, int64."""
    coords = frames.coords
    # searchsorted would convert all coordinates to the dtype of these numbers
    numbers = np.arange(frames.shape[0]).astype(coords.dtype)
    return np.append(np.searchsorted(coords[0], numbers), np.int64(coords.shape[1]))


def coo_rows(frames: Any, starts: AnyArray, first: int, stop: int) -> Any:
    """Return the frames from `first` to `stop`; `starts` comes from `coo_starts`."""
    entries = slice(int(starts[first]), int(starts[stop]))
    coords = frames.coords[:, entries].copy()
    coords[0] -= coords.dtype.type(first)
    return _sorted_coo(coords, frames.data[entries], (stop - first, *frames.shape[1:]))


def coo_take(frames: Any, starts: AnyArray, indices: AnyArray) -> Any:
    """Return the frames with these indices, in any order; `starts` comes from `coo_starts`."""
    # sparse's own indexing is compiled by numba first, which takes seconds
    counts = np.diff(starts)[indices]
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    entries = np.repeat(starts[indices] - (ends - counts), counts) + np.arange(total)
    coords = frames.coords[:, entries]
    coords[0] = np.repeat(np.arange(len(indices)), counts)
    return _sorted_coo(coords, frames.data[entries], (len(indices), *frames.shape[1:]))


def _sorted_coo(coords: AnyArray, data: AnyArray, shape: tuple[int, ...]) -> Any:
    """Make a sparse.COO array out of coordinates that are sorted and unique."""
    import sparse

    return sparse.COO(coords, data, shape=shape, has_duplicates=False, sorted=True)


def gcxs_to_csr(frames: Any) -> Any:
    """Convert a sparse.GCXS array to a scipy.sparse.csr_array without copying anything.

    `frames`, shape (*nav, *sig), must be compressed over its first axes, with indices and pointers
    that are both int32 or both int64. The matrix has one row per frame.
    """
    from scipy.sparse import csr_array

    n_nav = len(frames.compressed_axes)
    shape = (math.prod(frames.shape[:n_nav]), math.prod(frames.shape[n_nav:]))
    matrix = csr_array(shape, dtype=frames.dtype)
    # not given to the constructor: it reads all indices, and copies 64-bit indices to 32 bits
    matrix.data, matrix.indices, matrix.indptr = frames.data, frames.indices, frames.indptr
    return matrix


def gcxs_rows(entries: tuple[Any, Any, Any], shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """Make a sparse.GCXS array out of values, indices and pointers, compressed over `axes`.

    The arrays are neither copied nor checked.
    """
    data, indices, indptr = entries
    frames = copy.copy(_empty(shape, axes, data.dtype))
    # not given to the constructor: it reads all indices
    frames.data, frames.indices, frames.indptr = data, indices, indptr
    return frames


@lru_cache(maxsize=64)
def _empty(shape: tuple[int, ...], axes: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Return frames without entries. They are kept, because the constructor takes 0.3 ms."""
    import sparse

    pointers = np.zeros(math.prod(shape[axis] for axis in axes) + 1, np.int64)
    no_entries = (np.empty(0, dtype), np.empty(0, np.int64), pointers)
    return sparse.GCXS(no_entries, shape=shape, compressed_axes=axes)


def is_rows(frames: Any) -> bool:
    """Return whether a sparse.GCXS array is compressed over its first axis alone."""
    return frames.ndim > 1 and tuple(frames.compressed_axes) == (0,)


def like_scipy(indices: AnyArray, starts: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Convert indices and pointers to a dtype that SciPy supports: both int32 or both int64.

    The package `sparse` accepts any integer dtype. Arrays that fit are not copied.
    """
    small = np.dtype(np.int32)
    if indices.dtype == starts.dtype and indices.dtype in (small, np.dtype(np.int64)):
        return indices, starts
    short = all(a.dtype.itemsize < 4 or a.dtype == small for a in (indices, starts))
    dtype = small if short else np.dtype(np.int64)
    return indices.astype(dtype), starts.astype(dtype)
