"""Sum all frames, or their logarithms, or the pixels of each frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from udfdask.base.types import Kind
from udfdask.corrections.correct_tile import UncorrectedTile
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.kernels.cuda import sums as on_device
from udfdask.kernels.overflow import add_exactly, is_long
from udfdask.masks import checks
from udfdask.masks.dense_product import as_added_up, signed_if_fits
from udfdask.udf.buffers import BufferSpec, Views
from udfdask.udf.promises import Promises
from udfdask.udf.tile_sums import TileSums
from udfdask.udfs.shared.built_in import ALL_TILES, DENSE_TILES, SUMS, BuiltInUDF


def sum_dtypes(data: np.dtype[Any], asked: Any, n: int) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """Return the dtype in which to add up `n` values, and the dtype of the result.

    The result has the requested dtype, which must be able to hold every sum, or that of NumPy's
    sum, but int64 instead of uint64 if every sum fits, and float32 for float16.
    """
    if data.kind == "M":
        raise ArgumentTypeError(
            f"dates have no sum, but the data are {data}: subtract a date first"
        )
    natural = np.zeros(1, data).sum().dtype
    if natural == np.float16:  # its largest number is 65504
        natural = np.dtype(np.float32)
    if data.kind not in "biufc":
        return natural, natural
    low, high = (0, 1) if data.kind not in "iu" else (np.iinfo(data).min, np.iinfo(data).max)

    def fits(dtype: np.dtype[Any]) -> bool:
        limits = np.iinfo(dtype)
        return bool(limits.min <= n * int(low) and n * int(high) <= limits.max)

    # sums of 64-bit integers are checked while they are computed
    if data.kind in "iu" and not is_long(data) and not fits(natural):
        raise ArgumentValueError(
            f"the sum of {n} values of {data} may not fit {natural}: convert the data with "
            "array.astype('float64'), or process a part of them with roi="
        )
    natural = signed_if_fits(natural, data, n)
    dtype = natural if asked is None else checks.dtype(asked)
    order, least = "uifc", "u" if data.kind == "b" else data.kind
    if dtype.kind not in order or order.index(dtype.kind) < order.index(least):
        raise ArgumentTypeError(
            f"dtype={dtype} cannot hold the sum of {data} data, which is {natural}: omit dtype"
        )
    if dtype != natural and dtype.kind in "iu" and not fits(dtype):
        raise ArgumentValueError(
            f"dtype={dtype} cannot hold the sum of {n} values of {data}, which can be as large as "
            f"{n * int(high)}: omit dtype to get {natural}"
        )
    if is_long(data) and dtype.kind in "fc":  # sums can need more than 64 bits
        return np.promote_types(dtype, np.float64), dtype
    if data.kind in "biu":
        is_unsigned = data.kind == "u" or (data.kind == "b" and dtype.kind == "u")
        exact = np.uint64 if is_unsigned and dtype != np.int64 else np.int64  # see `as_added_up`
        return np.dtype(exact), dtype
    # keeps long double
    return np.promote_types(data, np.float64 if data.kind == "f" else np.complex128), dtype


class _SumsUDF(BuiltInUDF):
    """Sums in `intensity`; in `exact` before they are rounded, if that needs a wider dtype."""

    keeps_units = ("intensity",)

    def __init__(self, dtype: Any = None) -> None:
        super().__init__(dtype=dtype)

    def _declare(self, kind: Kind, n: int) -> Mapping[str, BufferSpec]:
        """Declare sums of `n` values."""
        exact, dtype = sum_dtypes(self.meta.input_dtype, self.params.dtype, n)
        buffers = {"intensity": self.buffer(kind=kind, dtype=dtype, where="device")}
        if exact != dtype:
            buffers["exact"] = self.buffer(kind=kind, dtype=exact, use="private", where="device")
        return buffers

    @property
    def _sums(self) -> Any:
        return self.results.exact if "exact" in self.results else self.results.intensity

    def postprocess(self) -> None:
        if "exact" in self.results:
            self.results.intensity[...] = self.results.exact


class SumUDF(_SumsUDF):
    """Sum all frames, pixel by pixel.

    Parameters
    ----------
    dtype : dtype-like, optional
        Dtype of the result; by default int64 for integers, uint64 for unsigned integers whose sum
        could exceed 2**62, otherwise the dtype of the data (float32 for float16). It must be able
        to hold every possible sum.

    Notes
    -----
    Buffer `intensity`, kind sig, shape `sig`, in the unit of the data: ``sum_n frame_n[y, x]``.

    Integers are added up exactly, in 64 bits, floating and complex data in double precision. The
    result is rounded to its dtype once. With corrections, the sum is corrected, not each frame. If
    a (partial) sum of 64-bit integers does not fit, the run stops with a `SumOverflowError`; with a
    floating `dtype`, they are added up in double precision.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import SumUDF
    >>> x = da.ones((4, 5, 2, 2), dtype="uint16", chunks=(2, 5, 2, 2))
    >>> ud.run_udf(x, SumUDF())["intensity"].compute()
    array([[20, 20],
           [20, 20]])
    """

    promises = replace(SUMS, merge_only_reads_src=True, only_sums_frames=True, processes_sums=True)
    _kernels = ALL_TILES

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        return self._declare("sig", self._count_frames())

    def process_tile(self, tile: Any) -> None:
        total = as_added_up(self._sums, self.meta.input_dtype)
        if isinstance(tile, UncorrectedTile):
            total += tile.sum(axis=0)
        elif self.meta._backend.on_device:
            on_device.add_frames(tile, total)
        elif self.meta._backend.is_sparse:
            from udfdask.kernels.cpu.sparse_sums import add_entries, entries_of

            add_entries(entries_of(tile), total)
        else:
            from udfdask.kernels.cpu.pixel_sums import add_frames

            add_frames(tile, total)

    def process_sums(self, sums: TileSums) -> None:
        """Add the sum of the frames of a tile, which other UDFs use too."""
        total = self._sums
        total += sums.pixel_sums.astype(total.dtype)

    def merge(self, dest: Views, src: Views) -> None:
        name = "exact" if "exact" in dest else "intensity"
        total, more = getattr(dest, name), getattr(src, name)
        if is_long(self.meta.input_dtype):
            add_exactly(total, more)
        else:  # the plan ensures that sums of narrow integers fit 64 bits
            total += more
        if name == "exact":
            dest.intensity[...] = dest.exact


class SumSigUDF(_SumsUDF):
    """Sum the pixels of each frame.

    Parameters
    ----------
    dtype : dtype-like, optional
        Dtype of the result, as for `SumUDF`.

    Notes
    -----
    Buffer `intensity`, kind nav, shape `nav`, in the unit of the data: ``sum_yx frame[y, x]``.

    Integers are added up exactly, in 64 bits, floating and complex data in double precision and
    pairwise. The result is rounded to its dtype once per signal chunk. Sums of 64-bit integers that
    do not fit 64 bits stop the run, as those of `SumUDF`.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import SumSigUDF
    >>> x = da.ones((2, 2, 8, 8), dtype="uint8", chunks=(1, 2, 8, 8))
    >>> ud.run_udf(x, SumSigUDF())["intensity"].compute()
    array([[64, 64],
           [64, 64]])
    """

    promises = replace(SUMS, processes_sums=True)
    _kernels = ALL_TILES

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        return self._declare("nav", self.meta.dataset_shape.sig.size)

    def process_tile(self, tile: Any) -> None:
        total = as_added_up(self._sums, self.meta.input_dtype)
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
        """Add the sums of each frame's part, which other UDFs use too."""
        total = self._sums
        total += sums.of_frames[:, 0].astype(total.dtype)


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

    @property
    def _products(self) -> Any:
        """Module with the functions for products, on the device or on the host."""
        from udfdask.kernels.cpu import log_sums
        from udfdask.kernels.cuda import dense_products

        return dense_products if self.meta._backend.on_device else log_sums

    def process_tile(self, tile: Any) -> None:
        products = self.results.mantissa, self.results.exponent
        if self.meta._backend.on_device:
            self._products.multiply_heights(tile, *products)
        else:
            pending = self.task_data.pending
            pending[0] = self._products.multiply_heights(tile, *products, pending[0])

    def postprocess(self) -> None:
        self._products.normalize_products(self.results.mantissa, self.results.exponent)

    def merge(self, dest: Views, src: Views) -> None:
        dest.mantissa *= src.mantissa
        dest.exponent += src.exponent
        self._products.normalize_products(dest.mantissa, dest.exponent)

    def get_results(self) -> Mapping[str, Any]:
        from udfdask.kernels.cpu.log_sums import log_of

        return {"logsum": log_of(self.results.mantissa, self.results.exponent)}
