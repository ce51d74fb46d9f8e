"""Sum the pixels of each frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from udfdask.kernels.cuda import sums as on_device
from udfdask.udf import UDF
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.promises import Promises
from udfdask.udf.tile_sums import TileSums
from udfdask.udfs.shared.kernel_backends import tile_backends
from udfdask.udfs.shared.sum_dtype import as_added_up, sum_dtypes


class SumSigUDF(UDF):
    """Sum the pixels of each frame.

    Parameters
    ----------
    dtype : dtype-like, optional
        Dtype of the result; by default int64 for integers, uint64 for unsigned integers whose sum
        could exceed 2**62, otherwise the dtype of the data (float32 for float16). It must be able
        to hold every possible sum: an integer dtype is refused for floating data, or if the sum of
        all pixels could exceed it.

    Notes
    -----
    Buffer `intensity`, kind nav, shape `nav`, in the unit of the data: ``sum_yx frame[y, x]``.

    Integers are added up exactly, in 64 bits, floating and complex data in double precision and
    pairwise. The result is rounded to its dtype once per signal chunk. If a sum of 64-bit integers
    does not fit 64 bits, the run stops with a `SumOverflowError`, even if it is a partial sum and
    further pixels would make it fit. With a floating `dtype`, they are added up in double
    precision.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import SumSigUDF
    >>> x = da.ones((2, 2, 8, 8), dtype="uint8", chunks=(1, 2, 8, 8))
    >>> ud.run_udf(x, SumSigUDF())["intensity"].compute()
    array([[64, 64],
           [64, 64]])
    """

    keeps_units = ("intensity",)
    promises = Promises(
        adds_signal_parts=True,
        declares_once=True,
        processes_sums=True,
        starts_no_threads=True,
        streams_tiles=True,
        takes_any_byte_order=True,
    )

    def __init__(self, dtype: Any = None) -> None:
        super().__init__(dtype=dtype)

    def get_preferred_input_dtype(self) -> Any:
        """Use the native dtype."""
        return self.USE_NATIVE_DTYPE

    def get_backends(self) -> Any:
        """Accept NumPy, CuPy and sparse tiles."""
        return tile_backends(self, SumSigUDF)

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        """Declare the sums, and a buffer of a wider dtype to add up in, if necessary."""
        n = self.meta.dataset_shape.sig.size
        exact, dtype = sum_dtypes(self.meta.input_dtype, self.params.dtype, n)
        buffers = {"intensity": self.buffer(kind="nav", dtype=dtype, where="device")}
        if exact != dtype:
            buffers["exact"] = self.buffer(kind="nav", dtype=exact, use="private", where="device")
        return buffers

    def process_tile(self, tile: Any) -> None:
        """Sum the pixels of each frame's part."""
        results = self.results
        total = results.exact if "exact" in results else results.intensity
        total = as_added_up(total, self.meta.input_dtype)
        if self.meta._backend.on_device:
            on_device.add_pixels(tile, total)
        elif self.meta._backend.is_sparse:
            from udfdask.kernels.cpu.pixel_sums import add_ragged
            from udfdask.kernels.cpu.sparse_sums import values_of

            add_ragged(*values_of(tile), total)
        else:
            from udfdask.kernels.cpu.pixel_sums import add_pixels

            add_pixels(tile, total)

    def process_sums(self, sums: TileSums) -> None:
        """Add the sums of each frame's part.

        Parameters
        ----------
        sums : TileSums
            The sums of the tile, shared with other UDFs of the run.
        """
        total = self.results.exact if "exact" in self.results else self.results.intensity
        total += sums.of_frames[:, 0].astype(total.dtype)

    def postprocess(self) -> None:
        """Round the sums of a chunk."""
        if "exact" in self.results:
            self.results.intensity[...] = self.results.exact
