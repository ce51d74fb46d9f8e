"""Sum over the pixels of each frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from udfdask.buffers import BufferSpec
from udfdask.udf import UDF
from udfdask.udfs.sum_dtype import sum_dtype


class SumSigUDF(UDF):
    """Sum over the pixels of each frame.

    Parameters
    ----------
    dtype : dtype-like, optional
        Dtype of the sum; by default what `array.sum(axis=...)` gives: uint64 for unsigned and
        int64 for signed integers, else that of the data.

    Notes
    -----
    Buffer `intensity`, kind nav, shape `nav`, in the unit of the data.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import SumSigUDF
    >>> x = da.ones((2, 2, 8, 8), dtype="uint8", chunks=(1, 2, 8, 8))
    >>> ud.run_udf(x, SumSigUDF())["intensity"].compute()
    array([[64, 64],
           [64, 64]], dtype=uint64)
    """

    _adds_signal_parts = True
    _declares_once = True
    _starts_no_threads = True

    def __init__(self, dtype: Any = None) -> None:
        super().__init__(dtype=dtype)

    def get_preferred_input_dtype(self) -> Any:
        """Return that the data are wanted as they are."""
        return self.USE_NATIVE_DTYPE

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        """Declare the sums."""
        dtype = sum_dtype(self.meta.input_dtype, self.params.dtype)
        return {"intensity": self.buffer(kind="nav", dtype=dtype)}

    def process_tile(self, tile: Any) -> None:
        """Add the pixels of each frame's part."""
        total = self.results.intensity
        axes = tuple(range(1, tile.ndim))
        total += np.add.reduce(tile, axis=axes, dtype=total.dtype)
