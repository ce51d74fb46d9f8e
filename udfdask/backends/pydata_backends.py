"""The array types of the package sparse."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from udfdask.backends.backend import NUMPY
from udfdask.backends.sparse_rows import SparseBackend, SparseRows, cut_rows, with_compiled_dtype
from udfdask.types import AnyArray


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CooBackend(SparseBackend):
    """Coordinate lists; the base of the other two formats."""

    missing_dtypes: str = "mM"

    def frames(self, block: Any, nav_dims: int) -> SparseRows:
        """Return the frames of a block, shape (*nav, *part of sig)."""
        return self.frames_of_stack(with_compiled_dtype(self._flat(block, nav_dims)))

    def select(self, rows: SparseRows, frames: Any) -> Any:
        """Return some frames."""
        if isinstance(frames, slice):
            return coo_rows(rows.array, rows.starts, frames.start, frames.stop)
        return coo_take(rows.array, rows.starts, frames)

    def join(self, parts: list[Any], counts: list[int]) -> Any:
        """Join full frames from their signal parts."""
        return self.read_only(_joined(parts, counts))

    def _flat(self, block: Any, nav_dims: int) -> Any:
        """Flatten the navigation axes of a block into one."""
        return block.reshape((math.prod(block.shape[:nav_dims]), *block.shape[nav_dims:]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DokBackend(CooBackend):
    """Dictionaries of keys, converted to coordinate lists."""

    def frames(self, block: Any, nav_dims: int) -> SparseRows:
        """Return the frames of a block as coordinate lists."""
        return COO.frames(block.to_coo(), nav_dims)

    def frames_of_stack(self, stack: Any) -> SparseRows:
        """Return the frames of a stack as coordinate lists."""
        return COO.frames_of_stack(stack.to_coo())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GcxsBackend(CooBackend):
    """Arrays compressed over some axes; frames are compressed over the navigation axis."""

    missing_dtypes: str = "mMegG"  # sparse compiles its methods with numba

    def reshape(self, array: Any, shape: tuple[int, ...]) -> Any:
        """Return an array in another shape with the same first dimension."""
        if is_rows(array):
            return gcxs_rows((array.data, array.indices, array.indptr), shape, (0,))
        return array.reshape(shape)

    def for_conversion(self, array: Any) -> Any:
        """Return an array that is compressed over its first axis as a CSR matrix."""
        return gcxs_to_csr(array) if is_rows(array) else array

    def join(self, parts: list[Any], counts: list[int]) -> Any:
        """Join full frames from their signal parts."""
        frames = _joined(parts, counts)
        if tuple(frames.compressed_axes) != (0,):
            frames = frames.change_compressed_axes((0,))
        return self.read_only(frames)

    def frames_of_stack(self, stack: Any) -> SparseRows:
        """Return the frames of a stack, compressed over them."""
        # not `super()`: a dataclass with slots is another class than the one of this code
        return SparseBackend.frames_of_stack(self, self._flat(stack, 1))

    def select(self, rows: SparseRows, frames: Any) -> Any:
        """Return some frames."""
        csr = rows.csr
        is_slice = isinstance(frames, slice)
        cut = cut_rows(csr, frames.start, frames.stop) if is_slice else csr[frames]
        return gcxs_rows((cut.data, cut.indices, cut.indptr), (cut.shape[0], *rows.sig), (0,))

    def _flat(self, block: Any, nav_dims: int) -> Any:
        """Flatten the navigation axes of a block into one, compressed over it."""
        import sparse

        sig = tuple(block.shape[nav_dims:])
        if nav_dims == 0:
            block = sparse.GCXS.from_coo(block.tocoo().reshape((1, *sig)), compressed_axes=(0,))
        elif tuple(block.compressed_axes or ()) != tuple(range(nav_dims)):
            block = block.change_compressed_axes(tuple(range(nav_dims)))
        indices, starts = like_scipy(block.indices, block.indptr)
        if is_rows(block) and indices is block.indices and starts is block.indptr:
            return block
        n = len(starts) - 1
        return gcxs_rows((block.data, indices, starts), (n, *sig), (0,))


def _joined(parts: list[Any], counts: list[int]) -> Any:
    """Join full frames from their signal parts, which are in C order."""
    import sparse

    for axis in range(len(counts), 0, -1):
        n = counts[axis - 1]
        groups = [parts[k : k + n] for k in range(0, len(parts), n)]
        parts = [sparse.concatenate(group, axis=axis) for group in groups]
    return parts[0]


_ROWS = "scipy.sparse.csr_array"
COO = CooBackend(name="sparse.COO", dense_kind=NUMPY, rows_kind=_ROWS)
GCXS = GcxsBackend(name="sparse.GCXS", dense_kind=NUMPY, rows_kind=_ROWS)
DOK = DokBackend(name="sparse.DOK", dense_kind=NUMPY, rows_kind=_ROWS)
