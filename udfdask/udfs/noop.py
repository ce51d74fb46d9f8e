"""Load all data without processing them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from udfdask.udf import UDF
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.promises import Promises


class NoOpUDF(UDF):
    """Load every chunk without processing it, to measure loading or to fill a cache.

    Parameters
    ----------
    preferred_input_dtype : dtype-like, optional
        Dtype to which tiles are converted, as `get_preferred_input_dtype` of another UDF does; by
        default they are not converted.

    Notes
    -----
    It has no buffers. The chunks are loaded when the `Result` is computed.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import NoOpUDF
    >>> dict(ud.run_udf(da.ones((4, 4, 8, 8)), NoOpUDF()).compute())
    {}
    """

    promises = Promises(adds_signal_parts=True, declares_once=True, starts_no_threads=True)

    def __init__(self, preferred_input_dtype: Any = None) -> None:
        super().__init__(preferred_input_dtype=preferred_input_dtype)

    def get_preferred_input_dtype(self) -> Any:
        """Use `preferred_input_dtype`, or the native dtype."""
        preferred = self.params.preferred_input_dtype
        return self.USE_NATIVE_DTYPE if preferred is None else preferred

    def get_backends(self) -> Any:
        """Accept NumPy and CuPy."""
        return (self.BACKEND_NUMPY, self.BACKEND_CUPY)

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        """Declare nothing."""
        return {}

    def process_tile(self, tile: Any) -> None:
        """Do nothing."""
