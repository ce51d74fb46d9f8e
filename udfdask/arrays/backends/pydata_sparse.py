"""Arrays of the package `sparse` as compressed rows, without a copy."""

from __future__ import annotations

import copy
import math
from functools import lru_cache
from typing import Any

import numpy as np

from udfdask.types import AnyArray


def coo_starts(frames: Any) -> AnyArray:
    """Return number of the first entry of each frame, and at last that of all entries, int64."""
    coords = frames.coords
    # looked for in the dtype of the coordinates, which would be converted for any other
    wanted = np.arange(frames.shape[0]).astype(coords.dtype)
    return np.append(np.searchsorted(coords[0], wanted), np.int64(coords.shape[1]))


def coo_rows(frames: Any, starts: AnyArray, first: int, stop: int) -> Any:
    """Return neighbouring frames, from `first` to `stop`; `starts` are those of `coo_starts`."""
    some = slice(int(starts[first]), int(starts[stop]))
    coords = frames.coords[:, some].copy()
    coords[0] -= coords.dtype.type(first)
    return _made(coords, frames.data[some], (stop - first, *frames.shape[1:]))


def coo_take(frames: Any, starts: AnyArray, places: AnyArray) -> Any:
    """Return frames by their places, which may be in any order."""
    counts = np.diff(starts)[places]
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    some = np.repeat(starts[places] - (ends - counts), counts) + np.arange(total)
    coords = frames.coords[:, some]
    coords[0] = np.repeat(np.arange(len(places)), counts)
    return _made(coords, frames.data[some], (len(places), *frames.shape[1:]))


def _made(coords: AnyArray, data: AnyArray, shape: tuple[int, ...]) -> Any:
    """Return an array of these very coordinates, sorted and none twice."""
    import sparse

    return sparse.COO(coords, data, shape=shape, has_duplicates=False, sorted=True)


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
