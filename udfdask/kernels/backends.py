"""The backends that kernels support besides NumPy: tuples of names, the preferred one first."""

from __future__ import annotations

from udfdask.arrays.backends.dense_backends import CUPY
from udfdask.arrays.backends.matrix_backends import SCIPY_CSR, SCIPY_CSR_ARRAY
from udfdask.arrays.backends.pydata_backends import COO, GCXS

DEVICE_TILES = (CUPY.name,)
"""Dense tiles on a device, for `kernels.cuda`."""

SPARSE_TILES = (GCXS.name, SCIPY_CSR.name, SCIPY_CSR_ARRAY.name, COO.name)
"""Sparse tiles that `kernels.cpu.sparse_sums` reads without a conversion."""
