"""The frames of a sparse block as rows that can be cut out, in the format of the block."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from udfdask.arrays.backends import names
from udfdask.arrays.backends.convert import reshaped, to_backend
from udfdask.arrays.backends.detect import backend_of
from udfdask.arrays.backends.pydata_sparse import (
    coo_rows,
    coo_starts,
    coo_take,
    gcxs_rows,
    is_rows,
    like_scipy,
)
from udfdask.arrays.backends.read_only import locked_sparse
from udfdask.errors import UDFError
from udfdask.types import AnyArray


def joined(pieces: Sequence[Any], counts: Sequence[int]) -> Any:
    """Return sparse frames from their signal parts, in the backend of those.

    Parts are in C order, `counts` of them along each signal axis. Matrices have one signal axis.
    """
    if len(pieces) == 1:
        return pieces[0]
    backend = backend_of(pieces[0])
    if backend in names.D2_BACKENDS:
        return locked_sparse(_beside_each_other(pieces, backend))
    import sparse

    for axis in range(len(counts), 0, -1):
        n = counts[axis - 1]
        groups = [pieces[k : k + n] for k in range(0, len(pieces), n)]
        pieces = [sparse.concatenate(group, axis=axis) for group in groups]
    whole = pieces[0]
    if backend == names.SPARSE_GCXS and tuple(whole.compressed_axes) != (0,):
        whole = whole.change_compressed_axes((0,))
    return locked_sparse(whole)


def _beside_each_other(matrices: Sequence[Any], backend: str) -> Any:
    """Return matrices beside each other, in their format."""
    if backend in names.CUPY_BACKENDS:
        from cupyx.scipy import sparse as package
    else:
        from scipy import sparse as package
    return package.hstack(matrices, format=matrices[0].format)


_ROW_FORMAT = {
    names.SCIPY_COO: names.SCIPY_CSR,
    names.SCIPY_COO_ARRAY: names.SCIPY_CSR_ARRAY,
    names.CUPY_SCIPY_COO: names.CUPY_SCIPY_CSR,
}
"""Formats of coordinates, out of which no rows can be cut, with those that do it for them."""


class SparseRows:
    """The frames of a sparse block, shape (frames, *part of the signal).

    No pixel occurs twice in a frame, values are in the byte order of the machine, float16 as
    float32, and nobody may write to them.

    Parameters
    ----------
    array : sparse array
        The frames, shape (frames, *sig part), or (frames, pixels) of a matrix.
    sig : tuple of int
        Shape of the part of the signal.
    """

    def __init__(self, array: Any, sig: tuple[int, ...]) -> None:
        self.array = array
        self.sig = sig
        self.backend = backend_of(array)

    @classmethod
    def of_block(cls, block: Any, nav_dims: int) -> SparseRows:
        """Return the frames of a block, shape (*nav, *sig part)."""
        sig = tuple(block.shape[nav_dims:])
        return cls(locked_sparse(_summed(_native(_flat(_checked(block), nav_dims)))), sig)

    @classmethod
    def of_stack(cls, stack: Any) -> SparseRows:
        """Return the frames of what has been cut out of such rows, and perhaps converted."""
        return cls(locked_sparse(_flat(stack, 1)), tuple(stack.shape[1:]))

    def __len__(self) -> int:
        return int(self.array.shape[0])

    @property
    def dtype(self) -> Any:
        """Dtype of the values."""
        return self.array.dtype

    @cached_property
    def _csr(self) -> Any:
        """The frames as compressed rows."""
        kin = names.CUPY_SCIPY_CSR if self._on_device else names.SCIPY_CSR_ARRAY
        return to_backend(self.array, kin, (len(self), *self.sig))

    @cached_property
    def _sorted(self) -> Any:
        """The frames of coordinates in the kindred format out of which rows can be cut."""
        return to_backend(self.array, _ROW_FORMAT[self.backend], self.array.shape)

    @cached_property
    def _starts(self) -> AnyArray:
        """Where the entries of each frame begin in `sparse.COO`."""
        return coo_starts(self.array)

    @property
    def _on_device(self) -> bool:
        return self.backend in names.CUPY_BACKENDS

    def take(self, places: AnyArray) -> SparseRows:
        """Return some of the frames, by their places."""
        if self.backend == names.SPARSE_GCXS:
            return self._again(self._csr[places])
        if self.backend == names.SPARSE_COO:
            return SparseRows(locked_sparse(coo_take(self.array, self._starts, places)), self.sig)
        if self.backend in _ROW_FORMAT:
            return self._again(self._sorted[places])
        return SparseRows(locked_sparse(self.array[places]), self.sig)

    def rows(self, start: int, stop: int) -> Any:
        """Return the frames from `start` to `stop`, in the format of the block."""
        if (start, stop) == (0, len(self)):
            return self.array
        if self.backend == names.SPARSE_GCXS or self.backend in names.CSR_BACKENDS:
            return self._cut(start, stop)
        if self.backend == names.SPARSE_COO:
            return locked_sparse(coo_rows(self.array, self._starts, start, stop))
        if self.backend in _ROW_FORMAT:
            return self._again(self._sorted[start:stop]).array
        return locked_sparse(self.array[start:stop])

    def _again(self, rows: Any) -> SparseRows:
        """Return compressed rows in the format of the block."""
        shape = (rows.shape[0], *self.sig)
        if self.backend == names.SPARSE_GCXS:
            array = gcxs_rows((rows.data, rows.indices, rows.indptr), shape, (0,))
        else:
            array = to_backend(rows, self.backend, shape)
        return SparseRows(locked_sparse(array), self.sig)

    def _cut(self, start: int, stop: int) -> Any:
        """Return some frames of compressed rows: values and places stay where they are."""
        array = self.array
        first, last = int(array.indptr[start]), int(array.indptr[stop])
        values = (array.data[first:last], array.indices[first:last])
        starts = array.indptr[start : stop + 1] - array.indptr[start]
        if self.backend == names.SPARSE_GCXS:
            return locked_sparse(gcxs_rows((*values, starts), (stop - start, *self.sig), (0,)))
        return locked_sparse(csr_rows(type(array), *values, starts, array.shape[1]))

    def dense(self, start: int, stop: int, first: int, last: int) -> AnyArray:
        """Return the pixels from `first` to `last` of some frames, shape (frames, last - first)."""
        csr = self._csr
        values = slice(int(csr.indptr[start]), int(csr.indptr[stop]))
        starts = csr.indptr[start : stop + 1] - csr.indptr[start]
        rows = csr_rows(type(csr), csr.data[values], csr.indices[values], starts, csr.shape[1])
        if (first, last) != (0, csr.shape[1]):
            rows = rows[:, first:last]
        kind = names.CUPY if self._on_device else names.NUMPY
        made: AnyArray = to_backend(rows, kind, (stop - start, last - first))
        return made

    def pixels(self, start: int, stop: int, places: AnyArray) -> AnyArray:
        """Return some pixels of some frames, shape (frames, m); `places` are flat."""
        kind = names.CUPY if self._on_device else names.NUMPY
        chosen = self._csr[start:stop][:, places]
        made: AnyArray = to_backend(chosen, kind, (stop - start, len(places)))
        return made


def csr_rows(cls: type, values: Any, pixels: Any, starts: Any, width: int) -> Any:
    """Return a matrix of compressed rows made of these very arrays."""
    matrix = cls((len(starts) - 1, width), dtype=values.dtype)
    # given to the constructor, indices of eight bytes may be copied, and all of them are read
    matrix.data, matrix.indices, matrix.indptr = values, pixels, starts
    return matrix


def _checked(block: Any) -> Any:
    """Return a block whose places lie within it; SciPy takes others, and kernels do not look.

    The indices of matrices are brought into the byte order of the machine.
    """
    backend = backend_of(block)
    if backend not in names.D2_BACKENDS or backend in names.CUPY_BACKENDS:
        return block
    twin = copy.copy(block)  # shallow: the user's keeps its own indices
    try:
        if backend in _ROW_FORMAT:
            _check_coordinates(twin)
        else:
            twin.check_format(full_check=True)
    except ValueError as error:
        raise UDFError(
            f"a chunk of type {type(block).__name__} came whose places do not fit its shape "
            f"{block.shape}: {error}"
        ) from None
    return twin


def _check_coordinates(matrix: Any) -> None:
    """Raise if a matrix of coordinates has any beyond its shape."""
    for axis, places in enumerate((matrix.row, matrix.col)):
        if len(places) and (places.min() < 0 or places.max() >= matrix.shape[axis]):
            raise ValueError(f"indices of axis {axis} must be >= 0 and < {matrix.shape[axis]}")


def _flat(block: Any, nav_dims: int) -> Any:
    """Return a block with its navigation in one dimension."""
    backend = backend_of(block)
    if backend in names.D2_BACKENDS:
        return block
    if backend == names.SPARSE_DOK:
        block, backend = block.to_coo(), names.SPARSE_COO
    sig = tuple(block.shape[nav_dims:])
    n = math.prod(block.shape[:nav_dims])
    if backend == names.SPARSE_GCXS:
        import sparse

        if nav_dims == 0:
            block = sparse.GCXS.from_coo(block.tocoo().reshape((1, *sig)), compressed_axes=(0,))
        elif tuple(block.compressed_axes or ()) != tuple(range(nav_dims)):
            block = block.change_compressed_axes(tuple(range(nav_dims)))
        indices, starts = like_scipy(block.indices, block.indptr)
        if is_rows(block) and indices is block.indices and starts is block.indptr:
            return block
        return gcxs_rows((block.data, indices, starts), (n, *sig), (0,))
    return reshaped(block, backend, (n, *sig))


def _native(array: Any) -> Any:
    """Return an array in a dtype that compiled code knows: no other byte order, no float16."""
    if array.dtype.char == "e":
        return array.astype("f4")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _summed(array: Any) -> Any:
    """Return an array in which no place occurs twice; SciPy allows that, and means the sum."""
    if backend_of(array) not in names.D2_BACKENDS or array.has_canonical_format:
        return array
    array = array.copy()
    array.sum_duplicates()
    return array
