"""Sparse matrices, whose rows are frames: SciPy's on the host, and CuPy's on a CUDA device."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

from udfdask.arrays.backends.backend import SparseBackend
from udfdask.arrays.backends.converter import converted
from udfdask.arrays.backends.dense_backends import CUPY, NUMPY
from udfdask.arrays.backends.sparse_rows import SparseRows, cut_rows, with_compiled_dtype
from udfdask.errors import UDFError


class IndexedRows(SparseRows):
    """Frames of a matrix that hands out rows itself."""

    def _picked(self, places: Any) -> Any:
        """Return some of the frames."""
        return self.array[places]


class CompressedRows(IndexedRows):
    """Frames of a matrix of compressed rows."""

    def _picked(self, places: Any) -> Any:
        """Return some of the frames."""
        if isinstance(places, slice):
            return cut_rows(self.array, places.start, places.stop)
        return self.array[places]


class CoordinateRows(SparseRows):
    """Frames of a matrix of coordinates, out of which no rows can be cut."""

    @cached_property
    def _sorted(self) -> Any:
        """The frames in the kindred format out of which rows can be cut."""
        return converted(self.array, self.backend.name.replace("coo", "csr"))

    def _picked(self, places: Any) -> Any:
        """Return some of the frames."""
        return converted(self._sorted[places], self.backend.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixBackend(SparseBackend):
    """A format of matrices."""

    is_matrix: bool = True
    missing_dtypes: str = "mMe"
    rows: type[SparseRows] = IndexedRows
    """How rows are cut out."""

    def frames(self, block: Any, nav_dims: int) -> SparseRows:
        """Return the frames of a block, shape (frames, pixels)."""
        matrix = block if self.on_device else self._checked(block)
        return self.frames_of_stack(_summed(with_compiled_dtype(matrix)))

    def frames_of_stack(self, stack: Any) -> SparseRows:
        """Return the frames of what has been cut out of such frames."""
        return self.rows(stack, tuple(stack.shape[1:]), self)

    def join(self, parts: list[Any], counts: list[int]) -> Any:
        """Return whole frames from their signal parts."""
        package = import_module(self.name.rpartition(".")[0])
        return self.read_only(package.hstack(parts, format=parts[0].format))

    def _checked(self, block: Any) -> Any:
        """Return a matrix whose places lie within it; SciPy takes others, and kernels do not look.

        Its indices are brought into the byte order of the machine.
        """
        twin = copy.copy(block)  # shallow: the user's keeps its own indices
        try:
            if self.rows is CoordinateRows:
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


def _summed(matrix: Any) -> Any:
    """Return a matrix in which no place occurs twice; SciPy allows that, and means the sum."""
    if matrix.has_canonical_format:
        return matrix
    matrix = matrix.copy()
    matrix.sum_duplicates()
    return matrix


def _of_scipy(form: str, rows: type[SparseRows]) -> MatrixBackend:
    """Return the backend of a format of SciPy."""
    return MatrixBackend(
        name=f"scipy.sparse.{form}",
        rows=rows,
        dense_kind=NUMPY,
        rows_kind="scipy.sparse.csr_array",
    )


def _of_cupy(form: str, rows: type[SparseRows]) -> MatrixBackend:
    """Return the backend of a format of CuPy."""
    return MatrixBackend(
        name=f"cupyx.scipy.sparse.{form}",
        device="cuda",
        on_device=True,
        rows=rows,
        dense_kind=CUPY,
        rows_kind="cupyx.scipy.sparse.csr_matrix",
    )


SCIPY_COO = _of_scipy("coo_matrix", CoordinateRows)
SCIPY_CSR = _of_scipy("csr_matrix", CompressedRows)
SCIPY_CSC = _of_scipy("csc_matrix", IndexedRows)
SCIPY_COO_ARRAY = _of_scipy("coo_array", CoordinateRows)
SCIPY_CSR_ARRAY = _of_scipy("csr_array", CompressedRows)
SCIPY_CSC_ARRAY = _of_scipy("csc_array", IndexedRows)
CUPY_SCIPY_COO = _of_cupy("coo_matrix", CoordinateRows)
CUPY_SCIPY_CSR = _of_cupy("csr_matrix", IndexedRows)
CUPY_SCIPY_CSC = _of_cupy("csc_matrix", IndexedRows)
