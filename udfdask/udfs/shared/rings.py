"""UDFs of concentric rings around a center."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from udfdask.base.once_per_process import OncePerProcess
from udfdask.base.types import AnyArray, Kind, is_lazy
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Axis, pixel_size
from udfdask.masks.bins import BinMembers, find_members, number_of_bins
from udfdask.masks.polar import distance, rounded
from udfdask.udf.buffers import BufferSpec
from udfdask.udfs.shared.centered import CenteredUDF, centered
from udfdask.udfs.shared.geometry_parameters import read_radii


class RingsUDF(CenteredUDF):
    """A UDF of concentric rings of equal width, with the parameters `r`, `ri` and `n_bins`."""

    def __init__(self, *, r: Any, ri: Any, n_bins: Any, **more: Any) -> None:
        for name, value in (("r", r), ("ri", ri), ("n_bins", n_bins)):
            if is_lazy(value):
                raise ArgumentTypeError(
                    f"{name} must be a number, not a lazy {type(value).__name__}: compute it first"
                )
        r, ri = read_radii(r=r, ri=ri)
        number_of_bins(n_bins, 1, 0)  # raises if it is none
        super().__init__(**centered(r=r, ri=ri, n_bins=n_bins, **more))

    def _outer_radius(self) -> float:
        """Return the outer radius of the last ring; raise if it depends on a lazy center."""
        if self.params.r is not None:
            return self.params.r  # type: ignore[no-any-return]
        if any(map(is_lazy, self._center)):
            raise ArgumentTypeError(
                "r is required if cy or cx is lazy: pass r, or compute cy and cx first"
            )
        # the soft edge of the last ring reaches half a pixel beyond it
        return float(max(math.ceil(self._farthest_distance() + 0.5), self.params.ri + 1))

    def _rings(self) -> tuple[float, float, int]:
        """Return the outer radius, the inner radius and the number of rings."""
        r, p = self._outer_radius(), self.params
        return r, p.ri, number_of_bins(p.n_bins, r, p.ri)

    def _checked_rings(self) -> int:
        """Return the number of rings; raise if no ring is in the frame."""
        self._frame_shape()
        r, _, number = self._rings()
        self._check_reach(r)
        return number

    def _radius_axis(self) -> Axis:
        """Return the axis of the rings: the middle radius of each ring.

        It is in the unit of the signal axes, or in pixels if these differ or have none.
        """
        r, ri, number = self._rings()
        width = (r - ri) / number
        size, unit = pixel_size(self.meta.axes[-2:], is_stretched=self.params.stretch != 1)
        return Axis(name="radius", unit=unit, scale=width * size, offset=(ri + width / 2) * size)

    def get_shared_task_data(self) -> Mapping[str, Any]:
        """Return the pixels of each ring, and a cache for their parts in each tile."""
        if self._has_own_centers:
            return {}
        return {"members": self._members_about(self._center), "cut": OncePerProcess(2048)}

    def _members_about(self, center: tuple[float, float]) -> BinMembers:
        return find_members(center, self._frame_shape(), *self._rings(), *self._ellipse.values())

    def _declare_means(self, kind: Kind, shape: Any, dtype: str) -> dict[str, BufferSpec]:
        """Declare the buffer `intensity`, and the sums from which `_means` makes it."""
        declare = partial(self.buffer, kind, shape, dtype)
        private = declare(use="private")
        return {"sums": private, "covered": private, "intensity": declare(use="result_only")}

    def _means(self) -> Mapping[str, Any]:
        """Return the result `intensity`; it is NaN without a pixel."""
        with np.errstate(invalid="ignore"):
            return {"intensity": self.results.sums / self.results.covered}

    def _add_ring_sums(self, tile: AnyArray, sums: AnyArray, covered: AnyArray | None) -> None:
        """Add sum(w * I) of each ring to `sums`, shape (frames, rings), float64.

        With a center for each frame, sum(w) is added to `covered`, of the same shape.
        """
        from udfdask.kernels.cpu import centered_rings, ring_sums

        frames = ring_sums.frames_in_memory(tile)
        origin, shape = self.meta.sig_slice.origin, tile.shape[1:]
        if covered is not None:
            r, ri, number = self._rings()
            memory = frames.flat, frames.frame_step, frames.row_step, frames.swap
            about = self._own_centers, self._rounding, float(ri), (r - ri) / number
            centered_rings.add_rings_about(*memory, (*origin, *shape), *about, sums, covered)
            return

        def cut() -> Any:
            inside = self.task_data.members.within(origin, shape)
            places = inside.flat_pixels(origin, frames.row_step).astype(np.uint32)
            rings = ring_sums.RingPlaces(inside.bounds, places, inside.weight)
            return rings, ring_sums.ring_runs(rings, frames)

        rings, runs = self.task_data.cut.get((origin, shape, frames.layout), cut)
        ring_sums.add_ring_sums(frames, rings, runs, sums)

    def _rings_on_device(
        self, tile: Any, factors: Callable[[BinMembers], AnyArray]
    ) -> list[tuple[Any, Any]]:
        """Return the pixels of each ring in a tile, and the factors for them, on the device."""
        origin, shape = self.meta.sig_slice.origin, tile.shape[1:]
        share = self.meta._backend.dense.share

        def cut() -> list[tuple[Any, Any]]:
            inside = self.task_data.members.within(origin, shape)
            pixels, values = inside.flat_pixels(origin, shape[1]), factors(inside)
            rings = itertools.pairwise(inside.bounds)
            return [(share(pixels[a:b]), share(values[a:b])) for a, b in rings]

        found: list[tuple[Any, Any]] = self.task_data.cut.get((origin, shape), cut)
        return found

    def _farthest_distance(self) -> float:
        (cy, cx), (ny, nx) = self._center, self.meta.dataset_shape.sig
        dy, dx = np.array([0, 0, ny - 1, ny - 1]) - cy, np.array([0, nx - 1, 0, nx - 1]) - cx
        return float(np.hypot(*rounded(self._rounding, dy, dx)).max())

    def _check_reach(self, r: float | None) -> None:
        """Raise if all rings are outside of frames; if `r` is None, they end at the edge."""
        ri, (cy, cx) = self.params.ri, self._center
        if self._has_own_centers:
            self._check_centers(r, ri, soft=0.5)
        elif not (is_lazy(cy) or is_lazy(cx)):
            if self.params.r is None:
                self._check_center_inside()
            ny, nx = sig = tuple(self.meta.dataset_shape.sig)
            d = distance(cx, cy, nx, ny, **self._ellipse)
            # the soft edge of a ring reaches half a pixel beyond its radius
            if (r is not None and d.min() >= r + 0.5) or d.max() <= ri - 0.5:
                raise ArgumentValueError(
                    f"no pixel of frames of shape {sig} lies in the rings from ri={ri!r} to "
                    f"r={r!r} pixels around (cy, cx) = ({cy!r}, {cx!r})"
                )


class RadialUDF(RingsUDF):
    """A UDF of rings without more parameters."""

    def __init__(
        self,
        cy: float | None = None,
        cx: float | None = None,
        r: float | None = None,
        ri: float = 0.0,
        n_bins: int | None = None,
        centers: Any = None,
        stretch: float = 1.0,
        stretch_angle: float = 0.0,
        center: Any = None,
    ) -> None:
        place = {"cy": cy, "cx": cx, "center": center, "centers": centers}
        ellipse = {"stretch": stretch, "stretch_angle": stretch_angle}
        super().__init__(r=r, ri=ri, n_bins=n_bins, **place, **ellipse)
