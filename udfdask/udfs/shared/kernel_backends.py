"""Which array backends the built-in UDFs offer that have kernels for tiles of every kind."""

from __future__ import annotations

from udfdask.udf import UDF, UDFMethod

SPARSE_TILES = (
    UDF.BACKEND_SPARSE_GCXS,
    UDF.BACKEND_SCIPY_CSR,
    UDF.BACKEND_SCIPY_CSR_ARRAY,
    UDF.BACKEND_SPARSE_COO,
)
"""Formats out of which frames are read as they are; others are converted to one of these.

Kernels read the entries of all formats (`kernels/cpu/sparse_entries.py`): where frames begin,
pixels, values.
"""


def tile_backends(udf: UDF, own: type[UDF], *, on_device: bool = True) -> tuple[str, ...]:
    """Return NumPy and, where `process_tile` of the built-in `own` runs, CuPy and sparse formats.

    A subclass with a `process_tile` of its own, or that processes frames, has NumPy arrays in mind:
    it gets others if its `get_backends` says so. Long doubles, which compiled code does not know,
    stay with NumPy, as does what has no sums. `on_device` says whether CuPy is offered at all.
    """
    host = (UDF.BACKEND_NUMPY,)
    if not _is_own(udf, own):
        return host
    device = (UDF.BACKEND_CUPY,) if on_device else ()
    return host + device + SPARSE_TILES


def dense_backends(udf: UDF, own: type[UDF], *, on_device: bool = True) -> tuple[str, ...]:
    """Return NumPy and, where `process_tile` of the built-in `own` runs, CuPy."""
    host = (UDF.BACKEND_NUMPY,)
    return (*host, UDF.BACKEND_CUPY) if on_device and _is_own(udf, own) else host


def _is_own(udf: UDF, own: type[UDF]) -> bool:
    """Return whether a built-in's own `process_tile` runs, on numbers that compiled code knows.

    Where data are yet unknown, they are taken for such.
    """
    if "meta" in vars(udf):
        dtype = udf.meta.input_dtype
        if dtype.kind not in "biufc" or dtype.char in "gG":
            return False
    runs: object = getattr(getattr(udf, "process_tile", None), "__func__", None)
    return udf.get_method() is UDFMethod.TILE and runs is vars(own)["process_tile"]
