"""Sum over all frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from udfdask.buffers import BufferSpec, Views
from udfdask.udf import UDF
from udfdask.udfs.sum_dtype import sum_dtype


class SumUDF(UDF):
    """Sum over all frames, pixel by pixel.

    Parameters
    ----------
    dtype : dtype-like, optional
        Dtype of the sum; by default what `array.sum(axis=...)` gives: uint64 for unsigned and
        int64 for signed integers, else that of the data.

    Notes
    -----
    Buffer `intensity`, kind sig, shape `sig`, in the unit of the data.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import SumUDF
    >>> x = da.ones((4, 5, 2, 2), dtype="uint16", chunks=(2, 5, 2, 2))
    >>> ud.run_udf(x, SumUDF())["intensity"].compute()
    array([[20, 20],
           [20, 20]], dtype=uint64)
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
        """Declare the sum."""
        dtype = sum_dtype(self.meta.input_dtype, self.params.dtype)
        return {"intensity": self.buffer(kind="sig", dtype=dtype)}

    def process_tile(self, tile: Any) -> None:
        """Add the frames of a tile."""
        total = self.results.intensity
        total += np.add.reduce(tile, axis=0, dtype=total.dtype)

    def merge(self, dest: Views, src: Views) -> None:
        """Add a partial sum."""
        dest.intensity += src.intensity
