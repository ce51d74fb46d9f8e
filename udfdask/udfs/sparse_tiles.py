"""Which array backends the built-in UDFs offer that have kernels for sparse tiles."""

from __future__ import annotations

from udfdask.udf import UDF, UDFMethod

SPARSE_TILES = (
    UDF.BACKEND_SPARSE_GCXS,
    UDF.BACKEND_SCIPY_CSR,
    UDF.BACKEND_SCIPY_CSR_ARRAY,
    UDF.BACKEND_SPARSE_COO,
)
"""Formats out of which frames are read as they are; others are converted to one of these."""


def tile_backends(udf: UDF, own: type[UDF]) -> tuple[str, ...]:
    """Return NumPy and, where `process_tile` of the built-in `own` runs, the sparse formats.

    A subclass with a `process_tile` of its own, or that processes frames, has dense ones in mind:
    it gets sparse ones if its `get_backends` says so. Long doubles, which compiled code does not
    know, stay dense, as does what has no sums.
    """
    dense = (UDF.BACKEND_NUMPY,)
    dtype = udf.meta.input_dtype
    if udf.get_method() is not UDFMethod.TILE or dtype.kind not in "biufc" or dtype.char in "gG":
        return dense
    runs = getattr(udf.process_tile, "__func__", None) is vars(own)["process_tile"]
    return dense + SPARSE_TILES if runs else dense
