"""Names of array backends: the words of the package `sparseconverter`, which converts between them.

They are written out here, since importing that package loads SciPy and numba.
"""

from __future__ import annotations

NUMPY = "numpy"
CUPY = "cupy"
CUDA = "cuda"
SPARSE_COO = "sparse.COO"
SPARSE_GCXS = "sparse.GCXS"
SPARSE_DOK = "sparse.DOK"
SCIPY_COO = "scipy.sparse.coo_matrix"
SCIPY_CSR = "scipy.sparse.csr_matrix"
SCIPY_CSC = "scipy.sparse.csc_matrix"
SCIPY_COO_ARRAY = "scipy.sparse.coo_array"
SCIPY_CSR_ARRAY = "scipy.sparse.csr_array"
SCIPY_CSC_ARRAY = "scipy.sparse.csc_array"
CUPY_SCIPY_COO = "cupyx.scipy.sparse.coo_matrix"
CUPY_SCIPY_CSR = "cupyx.scipy.sparse.csr_matrix"
CUPY_SCIPY_CSC = "cupyx.scipy.sparse.csc_matrix"

CUPY_BACKENDS = frozenset({CUPY, CUPY_SCIPY_COO, CUPY_SCIPY_CSR, CUPY_SCIPY_CSC})
"""Arrays of CuPy."""
CUDA_BACKENDS = CUPY_BACKENDS | {CUDA}
"""What needs a CUDA device; `cuda` itself gets NumPy arrays."""
CSR_BACKENDS = frozenset({SCIPY_CSR, SCIPY_CSR_ARRAY})
"""Matrices of compressed rows, of the host."""
DENSE_BACKENDS = frozenset({NUMPY, CUPY, CUDA})
"""Dense arrays."""
ND_BACKENDS = DENSE_BACKENDS | {SPARSE_COO, SPARSE_GCXS, SPARSE_DOK}
"""Arrays of any number of dimensions."""
D2_BACKENDS = frozenset(
    {
        SCIPY_COO,
        SCIPY_CSR,
        SCIPY_CSC,
        SCIPY_COO_ARRAY,
        SCIPY_CSR_ARRAY,
        SCIPY_CSC_ARRAY,
        CUPY_SCIPY_COO,
        CUPY_SCIPY_CSR,
        CUPY_SCIPY_CSC,
    }
)
"""Matrices: frames are flattened for them."""
BACKENDS = ND_BACKENDS | D2_BACKENDS
"""All of them."""
CPU_BACKENDS = BACKENDS - CUDA_BACKENDS
"""What needs no device."""
SPARSE_BACKENDS = BACKENDS - DENSE_BACKENDS
"""Sparse arrays and matrices."""
BACKEND_ALL = (
    NUMPY,
    CUPY,
    SCIPY_CSR,
    SCIPY_CSC,
    SCIPY_COO,
    SPARSE_COO,
    SPARSE_GCXS,
    CUPY_SCIPY_CSR,
    CUPY_SCIPY_CSC,
    CUPY_SCIPY_COO,
)
"""Those that are recommended, preferred first."""
