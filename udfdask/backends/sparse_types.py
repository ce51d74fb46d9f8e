"""The sparse array types: those of the package sparse, and the matrices of SciPy and CuPy.

Arrays are made by setting their attributes. Constructors read all indices, and may copy them.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from udfdask.backends.sparse_rows import (
    SparseBackend,
    SparseRows,
    converted,
    csr_rows,
    cut_rows,
    with_compiled_dtype,
)
from udfdask.base.types import AnyArray
from udfdask.errors import UDFError


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
    places = np.repeat(starts[indices] - np.cumsum(counts) + counts, counts)
    entries = places + np.arange(len(places))
    coords = frames.coords[:, entries]
    coords[0] = np.repeat(np.arange(len(indices)), counts)
    return _sorted_coo(coords, frames.data[entries], (len(indices), *frames.shape[1:]))


def _sorted_coo(coords: AnyArray, data: AnyArray, shape: tuple[int, ...]) -> Any:
    import sparse

    return sparse.COO(coords, data, shape=shape, has_duplicates=False, sorted=True)


def gcxs_to_csr(frames: Any) -> Any:
    """Convert a sparse.GCXS array to a scipy.sparse.csr_array without copying anything.

    `frames`, shape (*nav, *sig), must be compressed over its first axes, with indices and pointers
    that are both int32 or both int64. The matrix has one row per frame.
    """
    from scipy.sparse import csr_array

    width = math.prod(frames.shape[len(frames.compressed_axes) :])
    return csr_rows(csr_array, frames.data, frames.indices, frames.indptr, width)


def gcxs_rows(entries: tuple[Any, Any, Any], shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """Make a sparse.GCXS array out of values, indices and pointers, compressed over `axes`.

    The arrays are neither copied nor checked.
    """
    frames = copy.copy(_empty(shape, axes, entries[0].dtype))
    frames.data, frames.indices, frames.indptr = entries
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
        """Join full frames from their signal parts, which are in C order."""
        import sparse

        for axis in range(len(counts), 0, -1):
            n = counts[axis - 1]
            groups = [parts[k : k + n] for k in range(0, len(parts), n)]
            parts = [sparse.concatenate(group, axis=axis) for group in groups]
        return self.read_only(self._flat(parts[0], 1))

    def _flat(self, block: Any, nav_dims: int) -> Any:
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

    def frames_of_stack(self, stack: Any) -> SparseRows:
        """Return the frames of a stack, compressed over them."""
        # not `super()`: a dataclass with slots is another class than the one of this code
        return SparseBackend.frames_of_stack(self, self._flat(stack, 1))

    def select(self, rows: SparseRows, frames: Any) -> Any:
        """Return some frames."""
        csr, is_slice = rows.csr, isinstance(frames, slice)
        cut = cut_rows(csr, frames.start, frames.stop) if is_slice else csr[frames]
        return gcxs_rows((cut.data, cut.indices, cut.indptr), (cut.shape[0], *rows.sig), (0,))

    def _flat(self, block: Any, nav_dims: int) -> Any:
        """Flatten the navigation axes of a block into one, compressed over it.

        Indices and pointers are converted to what SciPy supports: both int32 or both int64.
        """
        if nav_dims == 0:
            block, nav_dims = block.reshape((1, *block.shape)), 1
        axes = tuple(range(nav_dims))
        if tuple(block.compressed_axes or ()) != axes:
            block = block.change_compressed_axes(axes)
        places = block.indices, block.indptr
        short = all(a.dtype.itemsize < 4 or a.dtype == np.int32 for a in places)
        kind = np.int32 if short else np.int64
        if nav_dims == 1 and all(a.dtype == kind for a in places):
            return block
        indices, starts = (a.astype(kind, copy=False) for a in places)
        shape = (len(starts) - 1, *block.shape[nav_dims:])
        return gcxs_rows((block.data, indices, starts), shape, (0,))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MatrixBackend(SparseBackend):
    """A sparse matrix format of SciPy, or of CuPy on a CUDA device, with one frame per row."""

    is_matrix: bool = True
    missing_dtypes: str = "mMe"

    def frames(self, block: Any, nav_dims: int) -> SparseRows:
        """Return the frames of a block, shape (frames, pixels)."""
        matrix = with_compiled_dtype(block if self.on_device else _checked(block))
        if not matrix.has_canonical_format:  # a pixel can be stored several times: they add up
            matrix = matrix.copy()
            matrix.sum_duplicates()
        return self.frames_of_stack(matrix)

    def select(self, rows: SparseRows, frames: Any) -> Any:
        """Return some frames; a slice of a CSR matrix on the host is not copied."""
        matrix = rows.array
        if matrix.format == "coo":  # cannot be indexed
            return converted(rows.csr[frames], self.name)
        if isinstance(frames, slice) and matrix.format == "csr" and not self.on_device:
            return cut_rows(matrix, frames.start, frames.stop)
        return matrix[frames]

    def join(self, parts: list[Any], counts: list[int]) -> Any:
        """Join full frames from their signal parts."""
        package = import_module(self.name.rpartition(".")[0])
        return self.read_only(package.hstack(parts, format=parts[0].format))


def _checked(block: Any) -> Any:
    """Return a matrix of SciPy; raise if its indices are outside its shape.

    SciPy accepts such indices, and compiled code would read and write at them.
    """
    matrix = copy.copy(block)  # shallow: the user's matrix keeps its indices
    try:
        if matrix.format != "coo":
            matrix.check_format(full_check=True)  # also converts indices to native byte order
        elif matrix.nnz:
            for indices, n in zip((matrix.row, matrix.col), matrix.shape, strict=True):
                if indices.min() < 0 or indices.max() >= n:
                    raise ValueError(f"indices must be >= 0 and < {n}")  # noqa: TRY301
    except ValueError as error:
        raise UDFError(
            f"a chunk of type {type(block).__name__} came whose indices do not fit its shape "
            f"{block.shape}: {error}. Correct the function that makes the chunks"
        ) from None
    return matrix


def _host(kind: str) -> MatrixBackend:
    return MatrixBackend(name=f"scipy.sparse.{kind}")


def _device(kind: str) -> MatrixBackend:
    return MatrixBackend(name=f"cupyx.scipy.sparse.{kind}", device="cuda", on_device=True)


COO = CooBackend(name="sparse.COO")
GCXS = GcxsBackend(name="sparse.GCXS")
DOK = DokBackend(name="sparse.DOK")
SCIPY_CSR, SCIPY_CSR_ARRAY = _host("csr_matrix"), _host("csr_array")
SPARSE: tuple[SparseBackend, ...] = (
    *(SCIPY_CSR, _host("csc_matrix"), _host("coo_matrix")),
    *(SCIPY_CSR_ARRAY, _host("csc_array"), _host("coo_array")),
    *(COO, GCXS, DOK),
    *(_device("csr_matrix"), _device("csc_matrix"), _device("coo_matrix")),
)
"""All of them."""
