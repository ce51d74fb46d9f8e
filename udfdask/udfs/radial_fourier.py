"""Compute Fourier coefficients of each frame along concentric rings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.geometry.axes import Axis
from udfdask.kernels.cpu.dense_products import product
from udfdask.kernels.cuda.sums import add_ring_products
from udfdask.masks import bounding_radius, checks
from udfdask.masks.bins import BinMembers, share_angles
from udfdask.masks.polar import rounded
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.promises import Promises
from udfdask.udfs.shared.built_in import DENSE_TILES
from udfdask.udfs.shared.rings import RingsUDF


class RadialFourierUDF(RingsUDF):
    """Compute Fourier series of each frame along concentric rings, for symmetry and strain.

    Parameters
    ----------
    cy, cx, r, ri : float, optional
        Center and radii of the rings, in pixels, as for `RadialProfileUDF`; by default they cover
        the whole frame.
    n_bins : int
        Number of rings of equal width.
    max_order : int
        Highest order, 0 or more.
    centers, stretch, stretch_angle, center : optional
        Centers of the frames, an ellipse, and a center in place of `cy` and `cx`, as there.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        As for `RadialProfileUDF`; if `max_order` is negative.

    Notes
    -----
    Lengths and the center may be given in the unit of the signal axes, such as ``r="8 mrad"``.

    Buffer `coefficients`, kind nav, shape (*nav, n_bins * (max_order + 1)), complex64: for each
    ring b the orders n = 0 ... max_order, ``sum I w_b exp(i n phi)``, not normalized. The angle phi
    is zero along +x and increases toward +y. Distance and angle of a pixel are those in the
    coordinates in which the rings are round. The weights `w_b` are those of
    `udfdask.masks.radial_bins`. ``c.reshape((*nav, n_bins, max_order + 1))`` has one axis for the
    rings and one for the orders. ``abs(c[..., n]) / abs(c[..., 0])`` is the strength of the n-fold
    symmetry. Coefficients of a frame whose center is not finite are NaN, those of a ring without a
    pixel 0.

    Weights are in float32, or float64 for data that need it: the error is at most 2e-7, or 1e-12,
    of the sum of the weighted intensities of a ring. Each process holds about 40, or 124, bytes for
    each pixel of each ring. With `centers`, waves of each frame take many times as long.

    Examples
    --------
    >>> import dask.array as da, numpy as np, udfdask as ud
    >>> from udfdask.udfs import RadialFourierUDF
    >>> y, x = np.mgrid[-8:9, -8:9]
    >>> frames = np.tile(1 + np.cos(2 * np.arctan2(y, x)), (2, 3, 1, 1))  # two-fold
    >>> udf = RadialFourierUDF(r=6, ri=2, max_order=4)
    >>> c = ud.run_udf(da.from_array(frames, chunks=(1, 3, 17, 17)), udf)["coefficients"]
    >>> strength = abs(c[0, 0]).compute()
    >>> print((strength / strength[0]).round(2))
    [1.  0.  0.5 0.  0. ]
    """

    promises = Promises(adds_signal_parts=True, declares_once=True, takes_any_byte_order=True)
    _kernels = DENSE_TILES

    def __init__(
        self,
        cy: float | None = None,
        cx: float | None = None,
        r: float | None = None,
        ri: float = 0.0,
        n_bins: int = 1,
        max_order: int = 24,
        centers: Any = None,
        stretch: float = 1.0,
        stretch_angle: float = 0.0,
        center: Any = None,
    ) -> None:
        place = {"cy": cy, "cx": cx, "center": center, "centers": centers}
        ellipse = {"stretch": stretch, "stretch_angle": stretch_angle}
        super().__init__(r=r, ri=ri, n_bins=n_bins, max_order=max_order, **place, **ellipse)
        checks.integer("n_bins", n_bins, least=1)
        checks.integer("max_order", max_order, least=0)

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        self._frame_shape()
        p = self.params
        self._check_reach(p.r)
        declare = partial(self.buffer, "nav", (p.n_bins * (p.max_order + 1),), "complex64")
        return {"coefficients": declare() if self._has_own_centers else declare(where="device")}

    def get_result_axes(self) -> Mapping[str, tuple[Axis, ...]]:
        p = self.params
        places = np.ndindex(p.n_bins, p.max_order + 1)
        axis = Axis(name="bin_order", labels=tuple(f"bin {b} order {n}" for b, n in places))
        return {"coefficients": (axis,)}

    def _outer_radius(self) -> float:
        if self.params.r is not None:
            return float(self.params.r)
        (cy, cx), (ny, nx) = self._center, self.meta.dataset_shape.sig
        if self.params.stretch != 1:
            return math.ceil(self._farthest_distance()) + 1
        return bounding_radius(cx, cy, nx, ny)

    def process_tile(self, tile: Any) -> None:
        with np.errstate(invalid="ignore"):  # pixels can be infinite
            if self.meta._backend.on_device:
                self._process_on_device(tile)
            elif tile.size:
                self._process_on_host(tile.astype(np.float32) if tile.dtype == np.float16 else tile)

    def _process_on_host(self, tile: AnyArray) -> None:
        from udfdask.kernels.cpu.centered_rings import add_waves_about
        from udfdask.kernels.cpu.ring_sums import add_runs, cut_runs, frames_in_memory

        frames, data, p = frames_in_memory(tile), self.task_data, self.params
        origin, shape = self.meta.sig_slice.origin, tile.shape[1:]
        if self._has_own_centers:
            r, ri, number = self._rings()
            about = self._own_centers, self._rounding, float(ri), (r - ri) / number
            waves_of_frames = np.zeros((len(tile), p.n_bins, p.max_order + 1), np.complex128)
            add_waves_about(frames, (*origin, *shape), about, waves_of_frames)
            self.results.coefficients += waves_of_frames.reshape(len(tile), -1)
            return

        def cut() -> Any:
            inside = data.members.within(origin, shape)
            shared = share_angles(self._angles(inside), p.max_order + 1, _real(frames.flat.dtype))
            angles, terms = len(shared.waves), shared.weights.shape[1]
            ring = np.repeat(np.arange(p.n_bins), np.diff(inside.bounds))
            columns = np.add.outer(np.arange(angles), np.arange(terms)) % angles
            columns = columns + angles * np.arange(p.n_bins)[:, np.newaxis, np.newaxis]
            weights = shared.weights * inside.weight[:, np.newaxis]
            runs = cut_runs(
                inside.flat_pixels(origin, frames.row_step),
                ring * angles + shared.first,
                columns.reshape(-1, terms),
                weights.astype(shared.weights.dtype),
                frames,
            )
            return runs, shared.waves

        runs, waves = data.cut.get((origin, shape, frames.layout), cut)
        sums = np.zeros((len(tile), p.n_bins * len(waves)))
        add_runs(frames, runs, sums)
        coefficients = product(sums.reshape(-1, len(waves)), waves).view(np.complex128)
        self.results.coefficients += coefficients.reshape(len(tile), -1)

    def _angles(self, inside: BinMembers) -> AnyArray:
        """Return the angle of each pixel of the rings, in the coordinates where they are round."""
        cy, cx = self._center
        angles: AnyArray = np.arctan2(*rounded(self._rounding, inside.y - cy, inside.x - cx))
        return angles

    def _process_on_device(self, tile: Any) -> None:
        n_orders, real = self.params.max_order + 1, _real(tile.dtype)

        def waves(inside: BinMembers) -> AnyArray:
            """Return ``weight * exp(i n phi)`` of pixels, real and imaginary parts in turn."""
            step = np.exp(1j * self._angles(inside))
            # each order is computed from the one before: ten times as fast as one exponential each
            wave = np.empty((len(step), n_orders), dtype=np.complex128)
            wave[:, 0] = inside.weight
            for n in range(1, n_orders):
                np.multiply(wave[:, n - 1], step, out=wave[:, n])
            return wave.view(np.float64).astype(real)

        coefficients = self.results.coefficients
        sums = self.xp.zeros((len(tile), self.params.n_bins, 2 * n_orders))
        rings = self._rings_on_device(tile, waves)
        add_ring_products(tile.reshape(tile.shape[0], -1), rings, sums)
        coefficients += sums.view(np.complex128).reshape(coefficients.shape)


def _real(dtype: np.dtype[Any]) -> np.dtype[np.floating[Any]]:
    """Return the dtype of the products for data of a dtype."""
    return np.dtype(np.float32 if np.result_type(dtype, np.float32).itemsize == 4 else np.float64)
