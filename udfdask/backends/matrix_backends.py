"""Sparse matrix types, with one frame per row: SciPy on the host, CuPy on a CUDA device."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from udfdask.backends.backend import CUPY, NUMPY
from udfdask.backends.sparse_rows import (
    SparseBackend,
    SparseRows,
    converted,
    cut_rows,
    with_compiled_dtype,
)
from udfdask.errors import UDFError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MatrixBackend(SparseBackend):
    """A sparse matrix format."""

    is_matrix: bool = True
    missing_dtypes: str = "mMe"

    def frames(self, block: Any, nav_dims: int) -> SparseRows:
        """Return the frames of a block, shape (frames, pixels)."""
        matrix = block if self.on_device else self._checked(block)
        return self.frames_of_stack(_summed(with_compiled_dtype(matrix)))

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

    def _checked(self, block: Any) -> Any:
        """Return a matrix; raise if its indices are outside its shape.

        SciPy accepts such indices, and compiled code would read and write at them.
        """
        matrix = copy.copy(block)  # shallow: the user's matrix keeps its indices
        try:
            if matrix.format == "coo":
                _check_coordinates(matrix)
            else:
                matrix.check_format(full_check=True)  # also converts indices to native byte order
        except ValueError as error:
            raise UDFError(
                f"a chunk of type {type(block).__name__} came whose indices do not fit its shape "
                f"{block.shape}: {error}. Correct the function that makes the chunks"
            ) from None
        return matrix


def _check_coordinates(matrix: Any) -> None:
    """Raise if a COO matrix has indices outside its shape."""
    for axis, indices in enumerate((matrix.row, matrix.col)):
        if len(indices) and (indices.min() < 0 or indices.max() >= matrix.shape[axis]):
            raise ValueError(f"indices of axis {axis} must be >= 0 and < {matrix.shape[axis]}")


def _summed(matrix: Any) -> Any:
    """Add up the values of pixels that are stored several times, as SciPy defines it."""
    if matrix.has_canonical_format:
        return matrix
    matrix = matrix.copy()
    matrix.sum_duplicates()
    return matrix


SCIPY_COO, SCIPY_CSR, SCIPY_CSC, SCIPY_COO_ARRAY, SCIPY_CSR_ARRAY, SCIPY_CSC_ARRAY = (
    MatrixBackend(
        name=f"scipy.sparse.{kind}_{interface}",
        dense_kind=NUMPY,
        rows_kind="scipy.sparse.csr_array",
    )
    for interface in ("matrix", "array")
    for kind in ("coo", "csr", "csc")
)
MATRICES = (
    SCIPY_COO,
    SCIPY_CSR,
    SCIPY_CSC,
    SCIPY_COO_ARRAY,
    SCIPY_CSR_ARRAY,
    SCIPY_CSC_ARRAY,
    *(
        MatrixBackend(
            name=f"cupyx.scipy.sparse.{kind}_matrix",
            device="cuda",
            on_device=True,
            dense_kind=CUPY,
            rows_kind="cupyx.scipy.sparse.csr_matrix",
        )
        for kind in ("coo", "csr", "csc")
    ),
)
"""All of them."""
