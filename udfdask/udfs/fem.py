"""Compute the standard deviation over a ring: fluctuation electron microscopy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.shapes import Shape
from udfdask.geometry.units import Quantity
from udfdask.kernels.cuda import variance as on_device
from udfdask.kernels.overflow import compiled_dtype
from udfdask.masks import checks, ring
from udfdask.masks.coverage import Coverage, coverage_of_ring
from udfdask.masks.polar import check_stretch, rounding_matrix
from udfdask.types import AnyArray
from udfdask.udf import UDF
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.promises import Promises
from udfdask.udfs.shared.frame_geometry import (
    check_center_inside,
    check_position,
    check_radii_in_unit,
    frame_shape,
    quantities,
    stretch_of,
)
from udfdask.udfs.shared.kernel_backends import dense_backends
from udfdask.udfs.shared.own_centers import as_centers, check_centers, mean_center, own_centers


class FEMUDF(UDF):
    """Compute the standard deviation over a ring of each frame (fluctuation electron microscopy).

    Parameters
    ----------
    center : tuple of float, or {"zero", "middle"}, optional
        Center of the ring, (y, x), in pixels; by default where both axes are 0, if that is inside
        of the frame, or else ``shape // 2``. "zero" is 0 of the axes, "middle" is ``shape // 2``.
    rad_in, rad_out : float
        Inner and outer radius, in pixels, which are required; `rad_out` can be inf.
    centers : array, shape (*nav, 2), or AuxData of kind nav with extra_shape (2,), optional
        Center (y, x) of each frame, in pixels, instead of `center`: NumPy or dask, such as
        `raw_com` of `CoMUDF`. Frames on a device are then copied to the host.
    stretch : float
        Ratio of the long to the short half axis of elliptical rings, at least 1. A radius is the
        geometric mean of both half axes: these are ``radius * sqrt(stretch)`` and
        ``radius / sqrt(stretch)``, so that a ring keeps its area.
    stretch_angle : float
        Direction of the long half axis, in degrees from +x toward +y, which points down.

    Raises
    ------
    ArgumentTypeError
        If a radius is missing, or a radius or a coordinate is not a number; in `run_udf`, if the
        data are not numbers.
    ArgumentValueError
        If a radius is negative or NaN, `rad_in` is not smaller than `rad_out`, `stretch` is below
        1, `center` is not finite, or both `center` and `centers` are given; in `run_udf`, if frames
        are not 2-D, the ring contains no pixel, `center` is outside the frame and `rad_out` is inf,
        or `centers` does not fit the scan.

    Notes
    -----
    Lengths and the center may be given in the unit of the signal axes, such as "8 mrad".

    Buffer `intensity`, kind nav, shape `nav`, float32, in the unit of the data::

        sqrt(mean(|x - mean(x)|**2))    over the pixels at rad_in < d <= rad_out

    where `d` is the distance from the center, in the coordinates in which the ring is round, and
    `x` are the values of the frame in the ring, as in `numpy.std`. The computation uses double
    precision. With `centers`, it is NaN for a frame whose center is not finite, or whose ring has
    no pixel in the frame.

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
        "center": "position",
        "rad_in": "length",
        "rad_out": "length",
        "stretch": "stretch",
        "stretch_angle": "stretch_angle",
    }
    promises = Promises(declares_once=True, starts_no_threads=True)

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
        for name, radius in (("rad_in", rad_in), ("rad_out", rad_out)):
            if radius is None:
                raise ArgumentTypeError(f"{name} is missing: FEMUDF needs rad_in and rad_out")
        centers = as_centers(centers, center=center)
        if center is not None:
            center = check_position("center", center)
        check_stretch(stretch, stretch_angle)
        rad_in, rad_out = quantities(rad_in=rad_in, rad_out=rad_out)
        if not any(isinstance(radius, Quantity) for radius in (rad_in, rad_out)):
            names = ("rad_out", "rad_in")
            rad_out, rad_in = checks.radii(rad_out, rad_in, names=names, finite=False)
        check_radii_in_unit(rad_out, rad_in, names=("rad_out", "rad_in"))
        super().__init__(
            center=center,
            rad_in=rad_in,
            rad_out=rad_out,
            centers=centers,
            stretch=stretch,
            stretch_angle=stretch_angle,
        )

    def _center_names(self) -> tuple[str, ...]:
        return ("center",) if self._kwargs["centers"] is None else ()

    def get_preferred_input_dtype(self) -> Any:
        """Use the native dtype."""
        return self.USE_NATIVE_DTYPE

    def get_backends(self) -> Any:
        """Accept NumPy, and CuPy unless each frame has its own center."""
        return dense_backends(self, FEMUDF, on_device=self._kwargs["centers"] is None)

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        """Declare the standard deviation, and the mean and the sum of squares it comes from."""
        p, sig = self.params, frame_shape(self, kinds="biufc")
        common = p.centers is None
        if not common:
            check_centers(self, p.rad_out, p.rad_in, p.stretch)
        else:
            if p.rad_out == math.inf:
                check_center_inside(self, self._center())
            if not self._ring(self._center()).any():
                raise ArgumentValueError(
                    f"no pixel of frames of shape {sig} lies in the ring {p.rad_in} < d <= "
                    f"{p.rad_out} around {self._center()}: radii and center (y, x) are in pixels"
                )
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

    def _center(self) -> tuple[float, float]:
        """Return the common center, by default the middle of the frame."""
        ny, nx = self.meta.dataset_shape.sig
        y, x = (ny // 2, nx // 2) if self.params.center is None else self.params.center
        return y, x

    def _ring(self, center: tuple[float, float]) -> AnyArray:
        """Return the mask of the ring around a center (y, x)."""
        (y, x), (ny, nx) = center, self.meta.dataset_shape.sig
        p = self.params
        return ring(
            x, y, nx, ny, p.rad_out, p.rad_in, stretch=p.stretch, stretch_angle=p.stretch_angle
        )

    def get_detector_masks(self) -> Mapping[str, AnyArray]:
        """Return the pixels of the ring; if each frame has its own center, around their mean."""
        center = self._center() if self.params.centers is None else mean_center(self)
        return {"fluctuations": self._ring(center)}

    def _coverages(self, sig: Shape) -> Sequence[Coverage]:
        """Return how much of a frame the ring covers."""
        p, (ny, nx) = self.params, sig
        center = (ny // 2, nx // 2) if p.center is None else p.center
        coverage = coverage_of_ring(
            "ring",
            center if p.centers is None else None,
            (ny, nx),
            {"rad_in": p.rad_in, "rad_out": p.rad_out},
            stretch=p.stretch,
            stretch_angle=p.stretch_angle,
        )
        return (coverage,)

    def get_shared_task_data(self) -> Mapping[str, Any]:
        """Return the pixels of the ring in each part, and their number in the parts before it."""
        if self.params.centers is not None:
            return {}
        share = self.meta._backend.dense.share
        mask, parts, before = self._ring(self._center()), [], 0
        scheme = self.meta.tiling_scheme
        for k in range(len(scheme)):
            ys, xs = np.nonzero(mask[scheme[k].get()])
            parts.append((share(ys), share(xs), before))
            before += ys.size
        return {"parts": parts, "pixels": before}

    def process_tile(self, tile: Any) -> None:
        """Add the pixels of the ring that are in this part of the frames."""
        if self.params.centers is not None:
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
            add_spread_about(
                tile.astype(compiled_dtype(tile.dtype), copy=False),
                self.meta.sig_slice.origin,
                own_centers(self),
                rounding_matrix(*stretch_of(self)),
                (p.rad_in, p.rad_out),
                found.pixels,
                found.mean,
                found.spread,
            )

    def postprocess(self) -> None:
        """Compute standard deviations from the sums of squares."""
        common = self.params.centers is None
        pixels = self.task_data.pixels if common else self.results.pixels
        with np.errstate(invalid="ignore"):  # a ring without a pixel
            self.results.intensity[:] = np.sqrt(self.results.spread / pixels)
