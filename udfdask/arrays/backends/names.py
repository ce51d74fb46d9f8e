"""The names of array backends, as in LiberTEM. Every UDF has them as attributes."""

from __future__ import annotations

from typing import ClassVar

from udfdask.arrays.backends.table import BACKENDS

Names = frozenset[str]


class BackendNames:
    """Names of array backends, and sets of names with a common property."""

    BACKEND_NUMPY: ClassVar[str] = "numpy"
    BACKEND_CUPY: ClassVar[str] = "cupy"
    BACKEND_CUDA: ClassVar[str] = "cuda"
    BACKEND_SPARSE_COO: ClassVar[str] = "sparse.COO"
    BACKEND_SPARSE_GCXS: ClassVar[str] = "sparse.GCXS"
    BACKEND_SPARSE_DOK: ClassVar[str] = "sparse.DOK"
    BACKEND_SCIPY_COO: ClassVar[str] = "scipy.sparse.coo_matrix"
    BACKEND_SCIPY_CSR: ClassVar[str] = "scipy.sparse.csr_matrix"
    BACKEND_SCIPY_CSC: ClassVar[str] = "scipy.sparse.csc_matrix"
    BACKEND_SCIPY_COO_ARRAY: ClassVar[str] = "scipy.sparse.coo_array"
    BACKEND_SCIPY_CSR_ARRAY: ClassVar[str] = "scipy.sparse.csr_array"
    BACKEND_SCIPY_CSC_ARRAY: ClassVar[str] = "scipy.sparse.csc_array"
    BACKEND_CUPY_SCIPY_COO: ClassVar[str] = "cupyx.scipy.sparse.coo_matrix"
    BACKEND_CUPY_SCIPY_CSR: ClassVar[str] = "cupyx.scipy.sparse.csr_matrix"
    BACKEND_CUPY_SCIPY_CSC: ClassVar[str] = "cupyx.scipy.sparse.csc_matrix"
    BACKEND_ALL: ClassVar[tuple[str, ...]] = (
        BACKEND_NUMPY,
        BACKEND_CUPY,
        BACKEND_SCIPY_CSR,
        BACKEND_SCIPY_CSC,
        BACKEND_SCIPY_COO,
        BACKEND_SCIPY_CSR_ARRAY,
        BACKEND_SCIPY_CSC_ARRAY,
        BACKEND_SCIPY_COO_ARRAY,
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
