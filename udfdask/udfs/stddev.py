"""Mean, variance and standard deviation over all frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from udfdask.buffers import BufferSpec, Views
from udfdask.errors import ArgumentTypeError
from udfdask.on_device import moments as on_device
from udfdask.udf import UDF


class StdDevUDF(UDF):
    """Mean, variance and standard deviation over all frames, pixel by pixel.

    Parameters
    ----------
    dtype : dtype-like
        Floating dtype of `var`, `std` and `mean`. What they are made of stays in double precision.

    Raises
    ------
    ArgumentTypeError
        If `dtype` is not a floating dtype.

    Notes
    -----
    With n frames x_i, results of kind sig and shape `sig`:

    - `sum`: ``sum_i x_i``, float64, for complex data complex128, in the unit of the data;
    - `varsum`: ``sum_i |x_i - mean|**2``, float64, in the squared unit of the data;
    - `mean`: ``sum / n``, complex for complex data;
    - `var`: ``varsum / n`` (as `numpy.var` with ``ddof=0``), and `std`, its square root;

    and `num_frames`, n, kind single, int64. Over no frame at all `mean`, `var` and `std` are NaN.

    Deviations are taken from the mean of a few frames, while those are in the cache, and merged
    pairwise [1]_, so that a large offset costs no precision. Integers of 8 and 16 bits take
    exact sums of squares instead.

    References
    ----------
    .. [1] T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating formulae and a pairwise algorithm for
       computing sample variances", Stanford University, report STAN-CS-79-773, 1979.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import StdDevUDF
    >>> x = da.arange(4 * 2, chunks=4).reshape(4, 1, 2)
    >>> res = ud.run_udf(x, StdDevUDF())
    >>> res["mean"].compute(), res["var"].compute()
    (array([[3., 4.]]), array([[5., 5.]]))
    """

    keeps_units = ("sum", "mean", "std")
    _adds_signal_parts = True
    _declares_once = True
    _merge_only_reads_src = True
    _starts_no_threads = True
    _streams_tiles = True
    _takes_any_byte_order = True

    def __init__(self, dtype: Any = np.float64) -> None:
        try:
            kind = np.dtype(dtype).kind
        except TypeError as error:
            raise ArgumentTypeError(f"dtype={dtype!r} is not a NumPy dtype: {error}") from None
        if kind != "f":
            raise ArgumentTypeError(
                f"dtype={dtype!r}: variances need a floating dtype, such as 'float32'"
            )
        super().__init__(dtype=dtype)

    def get_preferred_input_dtype(self) -> Any:
        """Return that the data are wanted as they are."""
        return self.USE_NATIVE_DTYPE

    def get_backends(self) -> Any:
        """Return NumPy and CuPy."""
        return (self.BACKEND_NUMPY, self.BACKEND_CUPY)

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        """Declare sums, and what is made of them."""
        data, real = self.meta.input_dtype, np.dtype(self.params.dtype)
        if data.kind not in "biufc":
            raise ArgumentTypeError(f"expected data that are numbers, got {data}")
        paired = data.kind == "c"
        mean = np.result_type(real, np.complex64) if paired else real
        return {
            "sum": self.buffer(
                kind="sig", dtype=np.complex128 if paired else np.float64, where="device"
            ),
            "varsum": self.buffer(kind="sig", dtype=np.float64, where="device"),
            "num_frames": self.buffer(kind="single", dtype=np.int64),
            "var": self.buffer(kind="sig", dtype=real, use="result_only"),
            "std": self.buffer(kind="sig", dtype=real, use="result_only"),
            "mean": self.buffer(kind="sig", dtype=mean, use="result_only"),
        }

    def get_task_data(self) -> Mapping[str, Any]:
        """Return how many frames each part of the signal has seen."""
        return {"seen": {}}

    @property
    def _moments(self) -> Any:
        """The functions for moments of arrays where these are."""
        if self.meta.array_backend == self.BACKEND_CUPY:
            return on_device
        from udfdask.numeric import moments

        return moments

    def process_tile(self, tile: Any) -> None:
        """Merge the moments of a tile."""
        seen, part = self.task_data.seen, self.meta.tiling_scheme_idx
        before = seen.get(part, 0)
        self._moments.add_moments(tile, before, self.results.sum, self.results.varsum)
        seen[part] = before + len(tile)
        if part == 0:  # once: tasks of other signal chunks have these frames as well
            self.results.num_frames += len(tile)

    def merge(self, dest: Views, src: Views) -> None:
        """Merge moments of other frames."""
        before, count = int(dest.num_frames[0]), int(src.num_frames[0])
        self._moments.merge_moments(before, dest.sum, dest.varsum, count, src.sum, src.varsum)
        dest.num_frames += src.num_frames

    def get_results(self) -> Mapping[str, Any]:
        """Return mean, variance and standard deviation."""
        n = self.results.num_frames[0]
        with np.errstate(invalid="ignore"):  # 0 / 0
            var, mean = self.results.varsum / n, self.results.sum / n
        return {"var": var, "std": np.sqrt(var), "mean": mean}
