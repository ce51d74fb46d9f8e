"""The array types that ready-made UDFs and their kernels take, the preferred one first."""

from __future__ import annotations

from udfdask.backends.dense_backends import CUPY
from udfdask.backends.matrix_backends import SCIPY_CSR, SCIPY_CSR_ARRAY
from udfdask.backends.pydata_backends import COO, GCXS
from udfdask.udf import UDF, UDFMethod

DEVICE_TILES = (CUPY.name,)
"""Dense tiles on a device, for `kernels.cuda`."""

SPARSE_TILES = (GCXS.name, SCIPY_CSR.name, SCIPY_CSR_ARRAY.name, COO.name)
"""Sparse tiles that `kernels.cpu.sparse_sums` reads without a conversion."""


def tile_backends(udf: UDF, own: type[UDF], *, on_device: bool = True) -> tuple[str, ...]:
    """Return NumPy, CuPy and sparse formats if `process_tile` of the class `own` runs, or NumPy.

    A subclass that overrides `process_tile`, or processes frames, expects NumPy arrays, and gets
    other arrays only if its `get_backends` offers them. Long doubles, for which there is no
    compiled code, and data that cannot be added up are processed by NumPy too. Without `on_device`,
    CuPy is not offered.
    """
    dense = dense_backends(udf, own, on_device=on_device)
    return dense + SPARSE_TILES if _is_own(udf, own) else dense


def dense_backends(udf: UDF, own: type[UDF], *, on_device: bool = True) -> tuple[str, ...]:
    """Return NumPy and CuPy if `process_tile` of the built-in class `own` runs, otherwise NumPy."""
    host = (UDF.BACKEND_NUMPY,)
    return host + DEVICE_TILES if on_device and _is_own(udf, own) else host


def _is_own(udf: UDF, own: type[UDF]) -> bool:
    """Return whether `process_tile` of a built-in class runs, on a dtype that its kernels accept.

    Before the dtype of the data is known, it counts as accepted.
    """
    if "meta" in vars(udf):
        dtype = udf.meta.input_dtype
        if dtype.kind not in "biufc" or dtype.char in "gG":
            return False
    runs: object = getattr(getattr(udf, "process_tile", None), "__func__", None)
    return udf.get_method() is UDFMethod.TILE and runs is vars(own)["process_tile"]
