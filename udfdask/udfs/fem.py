"""Compute the standard deviation over a ring: fluctuation electron microscopy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.errors import ArgumentTypeError
from udfdask.geometry.units import Quantity
from udfdask.kernels.cuda import variance as on_device
from udfdask.kernels.overflow import compiled_dtype
from udfdask.masks import checks
from udfdask.masks.polar import check_stretch
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.promises import Promises
from udfdask.udfs.shared.built_in import DENSE_TILES
from udfdask.udfs.shared.centered import RingUDF
from udfdask.udfs.shared.geometry_parameters import as_centers, check_position, read_radii


class FEMUDF(RingUDF):
    """Compute the standard deviation over a ring of each frame (fluctuation electron microscopy).

    Parameters
    ----------
    center : tuple of float, or {"zero", "middle"}, optional
        Center of the ring, (y, x), in pixels, as for `RadialProfileUDF`.
    rad_in, rad_out : float
        Inner and outer radius, in pixels, which are required; `rad_out` can be inf.
    centers, stretch, stretch_angle : optional
        Centers of the frames, and an ellipse, as there.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If a parameter is missing or wrong; in `run_udf`, if frames are not 2-D or not numbers, no
        pixel is in the ring, or `centers` does not fit the scan.

    Notes
    -----
    Lengths and the center may be given in the unit of the signal axes, such as "8 mrad".

    Buffer `intensity`, kind nav, shape `nav`, float32, in the unit of the data::

        sqrt(mean(|x - mean(x)|**2))    over the pixels at rad_in < d <= rad_out

    as `numpy.std` computes it, in double precision. With `centers`, it is NaN for a frame whose
    center is not finite, or whose ring has no pixel in the frame.

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
    calibrated: ClassVar[Mapping[str, str]] = {
        **RingUDF.calibrated,
        "center": "position",
        "rad_in": "length",
        "rad_out": "length",
    }
    promises = Promises(declares_once=True, starts_no_threads=True)
    _kernels = DENSE_TILES
    _detector_name = "fluctuations"

    def __init__(
        self,
        center: Any = None,
        rad_in: float | None = None,
        rad_out: float | None = None,
        *,
        centers: Any = None,
        stretch: float = 1.0,
        stretch_angle: float = 0.0,
    ) -> None:
        if rad_in is None or rad_out is None:
            raise ArgumentTypeError("FEMUDF needs rad_in and rad_out, but one of them is missing")
        centers = as_centers(centers, center=center)
        if center is not None:
            center = check_position("center", center)
        check_stretch(stretch, stretch_angle)
        radii = read_radii(rad_out=rad_out, rad_in=rad_in, finite=False)
        r, ri = (
            radius if isinstance(radius, Quantity) else checks.number(name, radius, finite=False)
            for name, radius in zip(("rad_out", "rad_in"), radii, strict=True)
        )
        ellipse = {"stretch": stretch, "stretch_angle": stretch_angle}
        super().__init__(center=center, rad_in=ri, rad_out=r, centers=centers, **ellipse)

    def _center_names(self) -> tuple[str, ...]:
        return () if self._has_own_centers else ("center",)

    def _center_in(self, sig: Sequence[int]) -> tuple[Any, Any]:
        y, x = (n // 2 for n in sig)
        return (y, x) if self.params.center is None else self.params.center

    def _radii(self) -> dict[str, Any]:
        return {name: self._kwargs[name] for name in ("rad_in", "rad_out")}

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        self._frame_shape(kinds="biufc")
        self._check_pixels(f"ring {self.params.rad_in} < d <= {self.params.rad_out}")
        common = not self._has_own_centers
        wide = "complex128" if self.meta.input_dtype.kind == "c" else "float64"
        declare = partial(self.buffer, kind="nav", where="device" if common else None)
        buffers = {
            "intensity": declare(dtype="float32"),
            "mean": declare(dtype=wide, use="private"),
            "spread": declare(dtype="float64", use="private"),
        }
        if not common:
            buffers["pixels"] = declare(dtype="float64", use="private")
        return buffers

    def get_shared_task_data(self) -> Mapping[str, Any]:
        """Return the pixels of the ring in each part, and their number in the parts before it."""
        if self._has_own_centers:
            return {}
        share = self.meta._backend.dense.share
        mask, parts, before = self._mask(), [], 0
        scheme = self.meta.tiling_scheme
        for k in range(len(scheme)):
            ys, xs = np.nonzero(mask[scheme[k].get()])
            parts.append((share(ys), share(xs), before))
            before += ys.size
        return {"parts": parts, "pixels": before}

    def process_tile(self, tile: Any) -> None:
        if self._has_own_centers:
            self._process_about_own_centers(tile)
            return
        ys, xs, before = self.task_data.parts[self.meta.tiling_scheme_idx]
        if not ys.size:
            return
        if self.meta._backend.on_device:
            on_device.add_spread(tile, ys, xs, before, self.results.mean, self.results.spread)
        else:
            from udfdask.kernels.cpu.centered_moments import add_spread  # loads numba

            values = tile.astype(compiled_dtype(tile.dtype), copy=False)
            add_spread(values, ys, xs, before, self.results.mean, self.results.spread)

    def _process_about_own_centers(self, tile: AnyArray) -> None:
        """Add the pixels of each frame's own ring that are in this part of the frames."""
        from udfdask.kernels.cpu.centered_moments import add_spread_about

        p, found = self.params, self.results
        if tile.size:
            values = tile.astype(compiled_dtype(tile.dtype), copy=False)
            rings = self._own_centers, self._rounding, (p.rad_in, p.rad_out)
            sums = found.pixels, found.mean, found.spread
            add_spread_about(values, self.meta.sig_slice.origin, rings, sums)

    def postprocess(self) -> None:
        found = self.results if self._has_own_centers else self.task_data
        with np.errstate(invalid="ignore"):  # a ring without a pixel
            self.results.intensity[:] = np.sqrt(self.results.spread / found.pixels)
