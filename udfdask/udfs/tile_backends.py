"""Which array backends the built-in UDFs offer that have kernels for tiles of every kind."""

from __future__ import annotations

from udfdask.udf import UDF, UDFMethod

SPARSE_TILES = (
    UDF.BACKEND_SPARSE_GCXS,
    UDF.BACKEND_SCIPY_CSR,
    UDF.BACKEND_SCIPY_CSR_ARRAY,
    UDF.BACKEND_SPARSE_COO,
)
"""Formats out of which frames are read as they are; others are converted to one of these."""


def tile_backends(udf: UDF, own: type[UDF], *, on_device: bool = True) -> tuple[str, ...]:
    """Return NumPy and, where `process_tile` of the built-in `own` runs, CuPy and sparse formats.

    A subclass with a `process_tile` of its own, or that processes frames, has NumPy arrays in mind:
    it gets others if its `get_backends` says so. Long doubles, which compiled code does not know,
    stay with NumPy, as does what has no sums. `on_device` says whether CuPy is offered at all.
    """
    host = (UDF.BACKEND_NUMPY,)
    dtype = udf.meta.input_dtype
    if udf.get_method() is not UDFMethod.TILE or dtype.kind not in "biufc" or dtype.char in "gG":
        return host
    if getattr(udf.process_tile, "__func__", None) is not vars(own)["process_tile"]:
        return host
    device = (UDF.BACKEND_CUPY,) if on_device else ()
    return host + device + SPARSE_TILES
