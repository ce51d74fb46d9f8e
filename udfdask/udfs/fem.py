"""Fluctuation electron microscopy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from udfdask.errors import ArgumentValueError
from udfdask.kernels.cuda import spread as on_device
from udfdask.kernels.dtypes import compiled_dtype
from udfdask.masks import ring
from udfdask.types import AnyArray
from udfdask.udf import UDF
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.promises import Promises
from udfdask.udfs.shared.frame_geometry import centre_given, check_frames, ring_radii
from udfdask.udfs.shared.kernel_backends import dense_backends


class FEMUDF(UDF):
    """Standard deviation over a ring of each frame: fluctuation electron microscopy.

    Parameters
    ----------
    center : tuple of float
        Centre of the ring, (y, x), in pixels.
    rad_in, rad_out : float
        Inner and outer radius, in pixels; `rad_out` may be inf.

    Raises
    ------
    ArgumentTypeError
        If a radius or a coordinate is no number; in `run_udf`, if the data are none.
    ArgumentValueError
        If a radius is negative or NaN, `rad_in` is not smaller than `rad_out`, or `center` is not
        finite; in `run_udf`, if frames have not two axes, or no pixel lies in the ring.

    Notes
    -----
    Buffer `intensity`, kind nav, shape `nav`, float32, in the unit of the data::

        sqrt(mean(|x - mean(x)|**2))    over the pixels at rad_in < d <= rad_out

    with `d` the distance from `center` and `x` the values of the frame there, as `numpy.std` has
    it. It is computed in double precision.

    References
    ----------
    .. [1] J. M. Gibson and M. M. J. Treacy, "Diminished medium-range order observed in annealed
       amorphous germanium", Physical Review Letters 78, 1074 (1997).

    Examples
    --------
    >>> import dask.array as da, numpy as np, udfdask as ud
    >>> from udfdask.udfs import FEMUDF
    >>> frame = np.arange(16 * 16).reshape(16, 16)
    >>> x = da.from_array(np.stack([frame, 2 * frame, 0 * frame]), chunks=(1, 8, 16))
    >>> ud.run_udf(x, FEMUDF(center=(8, 8), rad_in=3, rad_out=5))["intensity"].compute()
    array([47.577065, 95.15413 ,  0.      ], dtype=float32)
    """

    keeps_units = ("intensity",)
    promises = Promises(declares_once=True, starts_no_threads=True)

    def __init__(self, center: Any, rad_in: float, rad_out: float) -> None:
        center = centre_given("center", center)
        rad_in, rad_out = ring_radii(rad_in, rad_out)
        super().__init__(center=center, rad_in=rad_in, rad_out=rad_out)

    def get_preferred_input_dtype(self) -> Any:
        """Return that the data are wanted as they are."""
        return self.USE_NATIVE_DTYPE

    def get_backends(self) -> Any:
        """Return NumPy and CuPy."""
        return dense_backends(self, FEMUDF)

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        """Declare the standard deviation, and what it is made of."""
        check_frames("FEMUDF", self.meta, "biufc")
        if not self._ring().any():
            p, sig = self.params, tuple(self.meta.dataset_shape.sig)
            raise ArgumentValueError(
                f"no pixel of frames of shape {sig} lies in the ring {p.rad_in} < d <= "
                f"{p.rad_out} around {p.center}: radii and centre (y, x) are in pixels"
            )
        wide = "complex128" if self.meta.input_dtype.kind == "c" else "float64"
        return {
            "intensity": self.buffer(kind="nav", dtype="float32", where="device"),
            "mean": self.buffer(kind="nav", dtype=wide, use="private", where="device"),
            "spread": self.buffer(kind="nav", dtype="float64", use="private", where="device"),
        }

    def _ring(self) -> AnyArray:
        """Return which pixels of a frame count."""
        (y, x), sig = self.params.center, self.meta.dataset_shape.sig
        return ring(x, y, sig[1], sig[0], self.params.rad_out, self.params.rad_in)

    def get_shared_task_data(self) -> Mapping[str, Any]:
        """Return the pixels of each part of a frame that count, and how many come before them."""
        there, share = self.meta._backend.on_device, self.meta._backend.dense.share
        mask, found, before = self._ring(), [], 0
        scheme = self.meta.tiling_scheme
        for k in range(len(scheme)):
            ys, xs = np.nonzero(mask[scheme[k].get()])
            places = (share(ys), share(xs)) if there else (ys, xs)
            found.append((*places, before))
            before += ys.size
        return {"parts": found, "pixels": before}

    def process_tile(self, tile: Any) -> None:
        """Add the pixels of the ring that lie in this part."""
        ys, xs, before = self.task_data.parts[self.meta.tiling_scheme_idx]
        if not ys.size:
            return
        if self.meta._backend.on_device:
            on_device.add_spread(tile, ys, xs, before, self.results.mean, self.results.spread)
        else:
            from udfdask.kernels.cpu.spread import add_spread  # loads numba

            known = tile.astype(compiled_dtype(tile.dtype), copy=False)
            add_spread(known, ys, xs, before, self.results.mean, self.results.spread)

    def postprocess(self) -> None:
        """Make standard deviations of the squares."""
        self.results.intensity[:] = np.sqrt(self.results.spread / self.task_data.pixels)
