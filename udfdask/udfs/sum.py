"""Sum all frames, or the pixels of each frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from udfdask.corrections.correct_tile import UncorrectedTile
from udfdask.kernels.cuda import sums as on_device
from udfdask.kernels.overflow import add_exactly, is_long
from udfdask.udf import UDF
from udfdask.udf.buffers import BufferSpec, Views
from udfdask.udf.promises import Promises
from udfdask.udf.tile_sums import TileSums
from udfdask.udfs.shared.kernel_backends import tile_backends
from udfdask.udfs.shared.sum_dtype import as_added_up, sum_dtypes


class SumUDF(UDF):
    """Sum all frames, pixel by pixel.

    Parameters
    ----------
    dtype : dtype-like, optional
        Dtype of the result; by default int64 for integers, uint64 for unsigned integers whose sum
        could exceed 2**62, otherwise the dtype of the data (float32 for float16). It must be able
        to hold every possible sum: an integer dtype is refused for floating data, or if the sum of
        all frames could exceed it.

    Notes
    -----
    Buffer `intensity`, kind sig, shape `sig`, in the unit of the data: ``sum_n frame_n[y, x]``.

    Integers are added up exactly, in 64 bits, floating and complex data in double precision. The
    result is rounded to its dtype once. With corrections, the raw frames are added up, and the sum
    is corrected in double precision. This is the sum of the corrected frames, except that these
    frames are not rounded.

    If a sum of 64-bit integers does not fit 64 bits, the run stops with a `SumOverflowError`, even
    if it is a partial sum and further frames would make it fit. With a floating `dtype`, they are
    added up in double precision.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import SumUDF
    >>> x = da.ones((4, 5, 2, 2), dtype="uint16", chunks=(2, 5, 2, 2))
    >>> ud.run_udf(x, SumUDF())["intensity"].compute()
    array([[20, 20],
           [20, 20]])
    """

    keeps_units = ("intensity",)
    promises = Promises(
        adds_signal_parts=True,
        declares_once=True,
        merge_only_reads_src=True,
        only_sums_frames=True,
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
        return tile_backends(self, SumUDF)

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        """Declare the sum, and a buffer of a wider dtype to add up in, if necessary."""
        roi = self.meta.roi
        n = self.meta.dataset_shape.nav.size if roi is None else int(np.count_nonzero(roi))
        exact, dtype = sum_dtypes(self.meta.input_dtype, self.params.dtype, n)
        buffers = {"intensity": self.buffer(kind="sig", dtype=dtype, where="device")}
        if exact != dtype:
            buffers["exact"] = self.buffer(kind="sig", dtype=exact, use="private", where="device")
        return buffers

    def process_tile(self, tile: Any) -> None:
        """Add the frames of a tile."""
        total = self.results.exact if "exact" in self.results else self.results.intensity
        total = as_added_up(total, self.meta.input_dtype)
        if isinstance(tile, UncorrectedTile):
            total += tile.sum(axis=0)
        elif self.meta._backend.on_device:
            on_device.add_frames(tile, total)
        elif self.meta._backend.is_sparse:
            from udfdask.kernels.cpu.sparse_sums import add_entries, entries_of

            add_entries(entries_of(tile), total)
        else:
            from udfdask.kernels.cpu.tile_sums import add_frames

            add_frames(tile, total)

    def process_sums(self, sums: TileSums) -> None:
        """Add the sum of the frames of a tile.

        Parameters
        ----------
        sums : TileSums
            The sums of the tile, shared with other UDFs of the run.
        """
        total = self.results.exact if "exact" in self.results else self.results.intensity
        total += sums.pixel_sums.astype(total.dtype)

    def postprocess(self) -> None:
        """Round the sum of a chunk."""
        if "exact" in self.results:
            self.results.intensity[...] = self.results.exact

    def merge(self, dest: Views, src: Views) -> None:
        """Add a partial sum."""
        if "exact" in dest:
            self._add(dest.exact, src.exact)
            dest.intensity[...] = dest.exact
        else:
            self._add(dest.intensity, src.intensity)

    def _add(self, total: Any, more: Any) -> None:
        """Add sums; the plan ensures that sums of narrow integers fit 64 bits."""
        if is_long(self.meta.input_dtype):
            add_exactly(total, more)
        else:
            total += more


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
