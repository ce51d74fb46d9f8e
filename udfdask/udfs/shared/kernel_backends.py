"""Which array backends the built-in UDFs offer that have kernels for tiles of every kind."""

from __future__ import annotations

from udfdask.kernels.backends import DEVICE_TILES, SPARSE_TILES
from udfdask.udf import UDF, UDFMethod


def tile_backends(udf: UDF, own: type[UDF], *, on_device: bool = True) -> tuple[str, ...]:
    """Return NumPy and, where `process_tile` of the built-in `own` runs, CuPy and sparse formats.

    A subclass with a `process_tile` of its own, or that processes frames, has NumPy arrays in mind:
    it gets others if its `get_backends` says so. Long doubles, which compiled code does not know,
    stay with NumPy, as does what has no sums. `on_device` says whether CuPy is offered at all.
    """
    dense = dense_backends(udf, own, on_device=on_device)
    return dense + SPARSE_TILES if _is_own(udf, own) else dense


def dense_backends(udf: UDF, own: type[UDF], *, on_device: bool = True) -> tuple[str, ...]:
    """Return NumPy and, where `process_tile` of the built-in `own` runs, CuPy."""
    host = (UDF.BACKEND_NUMPY,)
    return host + DEVICE_TILES if on_device and _is_own(udf, own) else host


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
