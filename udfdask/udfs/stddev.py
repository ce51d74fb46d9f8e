"""Compute mean, variance and standard deviation over all frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError
from udfdask.kernels.cuda import variance as on_device
from udfdask.kernels.moment_arrays import Moments
from udfdask.masks import checks
from udfdask.udf.buffers import BufferSpec, Views
from udfdask.udf.tile_sums import TileSums
from udfdask.udfs.shared.built_in import ALL_TILES, SUMS, BuiltInUDF


class StdDevUDF(BuiltInUDF):
    """Compute mean, variance and standard deviation over all frames, pixel by pixel.

    Parameters
    ----------
    dtype : dtype-like
        Floating dtype of `var`, `std` and `mean`, which are always computed in double precision.

    Raises
    ------
    ArgumentTypeError
        If `dtype` is not a floating dtype.

    Notes
    -----
    With n frames x_i, results of kind sig and shape `sig`:

    - `sum`: ``sum_i x_i``, float64 (complex128 for complex data), in the unit of the data;
    - `varsum`: ``sum_i |x_i - mean|**2``, float64, in the squared unit of the data;
    - `mean`: ``sum / n``, complex for complex data;
    - `var`: ``varsum / n`` (as `numpy.var` with ``ddof=0``), and `std`, its square root;

    and `num_frames`, n, kind single, int64. Without any frame, `mean`, `var` and `std` are NaN.

    A large offset does not reduce the precision: the relative error of `varsum` is below 1e-12
    (tested with offsets up to 1e12, and up to 1e5 frames). Deviations are computed from a nearby
    frame, and sums of deviations are merged pairwise [1]_. For integers of 8 and 16 bits, sums of
    squares are exact instead; 64-bit integers are converted to float64.

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
    promises = replace(SUMS, merge_only_reads_src=True, processes_sums=True)
    _kernels = ALL_TILES

    def __init__(self, dtype: Any = np.float64) -> None:
        if checks.dtype(dtype).kind != "f":
            raise ArgumentTypeError(
                f"dtype={dtype!r}: variances need a floating dtype, such as 'float32'"
            )
        super().__init__(dtype=dtype)

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        data, real = self.meta.input_dtype, np.dtype(self.params.dtype)
        if data.kind not in "biufc":
            raise ArgumentTypeError(f"expected data that are numbers, got {data}")
        paired = data.kind == "c"
        double = np.complex128 if paired else np.float64
        mean = np.result_type(real, np.complex64) if paired else real
        result = partial(self.buffer, kind="sig", use="result_only")
        moment = partial(self.buffer, kind="sig", where="device")
        return {
            "origin": moment(dtype=double, use="private"),
            "excess": moment(dtype=double, use="private"),
            "varsum": moment(dtype=np.float64),
            "num_frames": self.buffer(kind="single", dtype=np.int64),
            "sum": result(dtype=double),
            "var": result(dtype=real),
            "std": result(dtype=real),
            "mean": result(dtype=mean),
        }

    def get_task_data(self) -> Mapping[str, Any]:
        """Return counters of the frames that were added to each part of the signal."""
        return {"seen": {}}

    def process_tile(self, tile: Any) -> None:
        before, moments = self._count(tile.shape[0]), _moments(self.results)
        if self.meta._backend.on_device:
            on_device.add_moments(tile, before, moments)
            return
        from udfdask.kernels.cpu import variance

        if self.meta._backend.is_sparse:
            from udfdask.kernels.cpu.sparse_sums import entries_of

            variance.add_entry_moments(entries_of(tile), before, moments)
        else:
            variance.add_moments(tile, before, moments)

    def process_sums(self, sums: TileSums) -> None:
        """Merge the moments of a tile, which other UDFs use too."""
        from udfdask.kernels.cpu.variance import merge_moments

        before = self._count(sums.count)
        merge_moments(before, _moments(self.results), sums.count, sums.moments)

    def _count(self, count: int) -> int:
        """Count the frames of a tile; return the number of frames of its part before them."""
        seen, part = self.task_data.seen, self.meta.tiling_scheme_idx
        before: int = seen.get(part, 0)
        seen[part] = before + count
        if part == 0:  # other parts of the signal contain the same frames
            self.results.num_frames += count
        return before

    def merge(self, dest: Views, src: Views) -> None:
        before, count = int(dest.num_frames[0]), int(src.num_frames[0])
        kernels: Any = on_device
        if not self.meta._backend.on_device:
            from udfdask.kernels.cpu import variance as kernels
        kernels.merge_moments(before, _moments(dest), count, _moments(src))
        dest.num_frames += src.num_frames

    def get_results(self) -> Mapping[str, Any]:
        n, (origin, excess, varsum) = self.results.num_frames[0], _moments(self.results)
        with np.errstate(invalid="ignore"):  # 0 / 0
            var, mean = varsum / n, origin + excess / n
        return {"sum": origin * n + excess, "mean": mean, "var": var, "std": np.sqrt(var)}


def _moments(views: Any) -> Moments:
    return Moments(views.origin, views.excess, views.varsum)
