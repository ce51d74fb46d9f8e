"""The names of array backends that authors of UDFs use, LiberTEM's: attributes of every UDF."""

from __future__ import annotations

from typing import ClassVar

from udfdask.arrays.backends.dense_backends import CUDA, CUPY, NUMPY
from udfdask.arrays.backends.matrix_backends import (
    CUPY_SCIPY_COO,
    CUPY_SCIPY_CSC,
    CUPY_SCIPY_CSR,
    SCIPY_COO,
    SCIPY_COO_ARRAY,
    SCIPY_CSC,
    SCIPY_CSC_ARRAY,
    SCIPY_CSR,
    SCIPY_CSR_ARRAY,
)
from udfdask.arrays.backends.pydata_backends import COO, DOK, GCXS
from udfdask.arrays.backends.table import BACKENDS

Names = frozenset[str]


class BackendNames:
    """Names of array backends, and sets of them by what they have in common."""

    BACKEND_NUMPY: ClassVar[str] = NUMPY.name
    BACKEND_CUPY: ClassVar[str] = CUPY.name
    BACKEND_CUDA: ClassVar[str] = CUDA.name
    BACKEND_SPARSE_COO: ClassVar[str] = COO.name
    BACKEND_SPARSE_GCXS: ClassVar[str] = GCXS.name
    BACKEND_SPARSE_DOK: ClassVar[str] = DOK.name
    BACKEND_SCIPY_COO: ClassVar[str] = SCIPY_COO.name
    BACKEND_SCIPY_CSR: ClassVar[str] = SCIPY_CSR.name
    BACKEND_SCIPY_CSC: ClassVar[str] = SCIPY_CSC.name
    BACKEND_SCIPY_COO_ARRAY: ClassVar[str] = SCIPY_COO_ARRAY.name
    BACKEND_SCIPY_CSR_ARRAY: ClassVar[str] = SCIPY_CSR_ARRAY.name
    BACKEND_SCIPY_CSC_ARRAY: ClassVar[str] = SCIPY_CSC_ARRAY.name
    BACKEND_CUPY_SCIPY_COO: ClassVar[str] = CUPY_SCIPY_COO.name
    BACKEND_CUPY_SCIPY_CSR: ClassVar[str] = CUPY_SCIPY_CSR.name
    BACKEND_CUPY_SCIPY_CSC: ClassVar[str] = CUPY_SCIPY_CSC.name
    BACKEND_ALL: ClassVar[tuple[str, ...]] = (
        BACKEND_NUMPY,
        BACKEND_CUPY,
        BACKEND_SCIPY_CSR,
        BACKEND_SCIPY_CSC,
        BACKEND_SCIPY_COO,
        BACKEND_SPARSE_COO,
        BACKEND_SPARSE_GCXS,
        BACKEND_CUPY_SCIPY_CSR,
        BACKEND_CUPY_SCIPY_CSC,
        BACKEND_CUPY_SCIPY_COO,
    )
    CPU_BACKENDS: ClassVar[Names] = frozenset(one.name for one in BACKENDS if one.device == "cpu")
    CUDA_BACKENDS: ClassVar[Names] = frozenset(one.name for one in BACKENDS if one.device == "cuda")
    CUPY_BACKENDS: ClassVar[Names] = frozenset(one.name for one in BACKENDS if one.on_device)
    SPARSE_BACKENDS: ClassVar[Names] = frozenset(one.name for one in BACKENDS if one.is_sparse)
    DENSE_BACKENDS: ClassVar[Names] = frozenset(one.name for one in BACKENDS if not one.is_sparse)
    D2_BACKENDS: ClassVar[Names] = frozenset(one.name for one in BACKENDS if one.is_matrix)
    ND_BACKENDS: ClassVar[Names] = frozenset(one.name for one in BACKENDS if not one.is_matrix)
