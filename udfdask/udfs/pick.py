"""Return frames as they are, or run without a result."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from udfdask.errors import UDFWarning
from udfdask.geometry.axes import Axis
from udfdask.udf.buffers import BufferSpec, Views
from udfdask.udf.promises import Promises
from udfdask.udfs.shared.built_in import ALL_TILES, BuiltInUDF

LARGE = 256 << 20
"""Size of the result in bytes above which there is a warning."""


class PickUDF(BuiltInUDF):
    """Return the frames of the ROI as one array in memory.

    Notes
    -----
    Buffer `intensity`, kind single, shape (frames in the ROI, *sig), in the dtype of the data.
    The axes of the frames are those of the data. Above 256 MiB there is a warning: index the dask
    array itself to get frames lazily.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import PickUDF
    >>> x = da.arange(4 * 4 * 2 * 2, chunks=16).reshape(4, 4, 2, 2)
    >>> ud.run_udf(x, PickUDF(), roi=(1, 2))["intensity"].compute()
    array([[[24, 25],
            [26, 27]]])
    """

    keeps_units = ("intensity",)
    promises = Promises(declares_once=True)
    _kernels = ALL_TILES

    def __init__(self) -> None:
        super().__init__()

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        n, dtype = self._count_frames(), self.meta.input_dtype
        size = n * self.meta.dataset_shape.sig.size * dtype.itemsize
        if size > LARGE:
            warnings.warn(
                f"PickUDF holds {n} frames, {size / 2**20:.0f} MiB, in memory: select fewer with "
                "roi=, or index the dask array itself",
                UDFWarning,
                stacklevel=2,
            )
        shape = (n, *self.meta.dataset_shape.sig)
        return {"intensity": self.buffer("single", shape, dtype, where="device")}

    def get_result_axes(self) -> Mapping[str, tuple[Axis, ...]]:
        """Count the frames; the axes of a frame are those of the data."""
        axes = self.meta.axes
        sig = axes[len(self.meta.dataset_shape.nav) :]
        names = [axis.name for axis in axes]
        frame = next(name for name in ("frame", "picked_frame", "udf_frame") if name not in names)
        return {"intensity": (Axis(name=frame), *sig)}

    def process_tile(self, tile: Any) -> None:
        if self.meta._backend.is_sparse:
            self._put_entries(tile)
        else:
            self.results.intensity[self.meta.slice.get()] = tile

    def _put_entries(self, tile: Any) -> None:
        """Write the stored pixels of a sparse tile; all other pixels are 0 already."""
        from udfdask.kernels.cpu.sparse_sums import entries_of

        starts, pixels, values = entries_of(tile)
        picked, part = self.results.intensity, self.meta.sig_slice
        rows = np.arange(len(picked))[self.meta.slice.get(nav_only=True)]
        places = np.unravel_index(pixels.astype(np.intp), tuple(part.shape))
        in_frame = (place + first for place, first in zip(places, part.origin, strict=True))
        picked[(np.repeat(rows, np.diff(starts)), *in_frame)] = values

    def merge(self, dest: Views, src: Views) -> None:
        rows = self.meta.slice.get(nav_only=True)
        dest.intensity[rows] = src.intensity[rows]


class NoOpUDF(BuiltInUDF):
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
        preferred = self.params.preferred_input_dtype
        return self.USE_NATIVE_DTYPE if preferred is None else preferred

    def get_backends(self) -> Any:
        return (self.BACKEND_NUMPY, self.BACKEND_CUPY)

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        return {}

    def process_tile(self, tile: Any) -> None:
        """Do nothing."""
