"""Sum the logarithms of all frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError
from udfdask.kernels.cuda import dense_products as on_device
from udfdask.udf.buffers import BufferSpec, Views
from udfdask.udf.promises import Promises
from udfdask.udfs.shared.built_in import DENSE_TILES, BuiltInUDF


class LogsumUDF(BuiltInUDF):
    """Sum the logarithms of all frames, pixel by pixel, to show weak features near strong ones.

    Notes
    -----
    Buffer `logsum`, kind sig, shape `sig`, float32: ``sum_n log(frame_n - min(frame_n) + 1)``, with
    the natural logarithm and the minimum of the whole frame.

    It is computed as the logarithm of a product, in double precision.

    Examples
    --------
    >>> import dask.array as da, numpy as np, udfdask as ud
    >>> from udfdask.udfs import LogsumUDF
    >>> x = da.from_array(np.array([[[7, 8, 9]]] * 2, dtype="uint16"))
    >>> ud.run_udf(x, LogsumUDF())["logsum"].compute().round(3)
    array([[0.   , 1.386, 2.197]], dtype=float32)
    """

    whole_frames = True
    promises = Promises(
        declares_once=True,
        merge_only_reads_src=True,
        starts_no_threads=True,
        takes_any_byte_order=True,
    )
    _kernels = DENSE_TILES

    def __init__(self) -> None:
        super().__init__()

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        data = self.meta.input_dtype
        if data.kind not in "biuf":
            raise ArgumentTypeError(
                f"expected data that are real numbers, got {data}: use dask.array.absolute(data)"
            )
        # one logarithm per pixel at the end, instead of one per value
        return {
            "logsum": self.buffer(kind="sig", dtype=np.float32, use="result_only"),
            "mantissa": self.buffer(kind="sig", dtype=np.float64, use="private", where="device"),
            "exponent": self.buffer(kind="sig", dtype=np.int64, use="private", where="device"),
        }

    def preprocess(self) -> None:
        self.results.mantissa[...] = 1

    def get_task_data(self) -> Mapping[str, Any]:
        """Return a counter of factors since the products of a chunk were last normalized."""
        return {"pending": [0]}

    def process_tile(self, tile: Any) -> None:
        results = self.results
        if self.meta._backend.on_device:
            on_device.multiply_heights(tile, results.mantissa, results.exponent)
            return
        from udfdask.kernels.cpu.log_sums import multiply_heights

        pending = self.task_data.pending
        pending[0] = multiply_heights(tile, results.mantissa, results.exponent, pending[0])

    @property
    def _products(self) -> Any:
        """Module with the functions for products, on the device or on the host."""
        if self.meta._backend.on_device:
            return on_device
        from udfdask.kernels.cpu import log_sums

        return log_sums

    def postprocess(self) -> None:
        self._products.normalize_products(self.results.mantissa, self.results.exponent)

    def merge(self, dest: Views, src: Views) -> None:
        self._products.merge_products(dest.mantissa, dest.exponent, src.mantissa, src.exponent)

    def get_results(self) -> Mapping[str, Any]:
        from udfdask.kernels.cpu.log_sums import log_of

        return {"logsum": log_of(self.results.mantissa, self.results.exponent)}
