"""UDFs of pixels around a center: one for all frames, or one for each frame."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from udfdask.base.types import AnyArray, is_lazy
from udfdask.errors import ArgumentValueError
from udfdask.geometry.shapes import Shape
from udfdask.masks.coverage import Coverage, Ring, measure
from udfdask.masks.polar import Rounding, check_stretch, rounding_matrix
from udfdask.udf.aux_data import AuxData
from udfdask.udfs.shared.built_in import DENSE_TILES, BuiltInUDF
from udfdask.udfs.shared.geometry_parameters import as_centers, read_center

ROUND = {"stretch": 1.0, "stretch_angle": 0.0}
"""The ellipse that is a circle."""


class CenteredUDF(BuiltInUDF):
    """A UDF with the parameters `cy` and `cx`, or `centers`, and `stretch` and `stretch_angle`."""

    calibrated: ClassVar[Mapping[str, str]] = {
        "cy": "y",
        "cx": "x",
        "r": "length",
        "ri": "length",
    }

    @property
    def _has_own_centers(self) -> bool:
        return self._kwargs.get("centers") is not None

    def _has_kernel(self, backend: str) -> bool:
        return not (self._has_own_centers and backend in DENSE_TILES)

    def _center_names(self) -> tuple[str, ...]:
        return () if self._has_own_centers else ("cy", "cx")

    def _center_in(self, sig: Sequence[int]) -> tuple[Any, Any]:
        """Return the common center (y, x) in pixels; by default the middle of the frame.

        A run has put 0 of the axes in their place before, if that is inside of the frame.
        """
        given = (self._kwargs.get(name) for name in ("cy", "cx"))
        y, x = (n // 2 if c is None else c for c, n in zip(given, sig, strict=True))
        return y, x

    @property
    def _center(self) -> tuple[Any, Any]:
        return self._center_in(self.meta.dataset_shape.sig)

    @property
    def _ellipse(self) -> dict[str, Any]:
        return {name: self._kwargs.get(name, default) for name, default in ROUND.items()}

    @property
    def _rounding(self) -> Rounding:
        return rounding_matrix(**self._ellipse)

    @property
    def _own_centers(self) -> AnyArray:
        """Centers of the frames of the current tile, shape (frames, 2), float64."""
        return np.ascontiguousarray(self.params.centers, dtype=np.float64)

    def _finite_centers(self) -> AnyArray | None:
        """Return the finite centers of a run, (n, 2); None if they are lazy, and on workers."""
        aux, roi = self._kwargs.get("centers"), self.meta.roi
        if not isinstance(aux, AuxData) or aux.is_lazy or aux.data is None:
            return None
        rows = np.reshape(aux.data, (-1, 2)).astype(np.float64)
        rows = rows if roi is None else rows[np.asarray(roi).reshape(-1)]
        return rows[np.isfinite(rows).all(axis=1)]

    def _check_centers(self, outer: float | None, inner: float, *, soft: float = 0.0) -> None:
        """Raise if centers are not those of the scan, or no frame has a pixel between two radii.

        The outer radius None is the whole frame; edges are soft over some pixels on both sides.
        """
        given, shape = self._kwargs["centers"].shape, self.meta.dataset_shape
        nav, sig = tuple(shape.nav), np.array(tuple(shape.sig))
        if given not in ((*nav, 2), (shape.nav.size, 2), (2 * shape.nav.size,)):
            raise ArgumentValueError(
                f"centers must have the shape {(*nav, 2)}, (y, x) for each frame, not {given}"
            )
        finite = self._finite_centers()
        if finite is None or not self._count_frames():
            return
        if not len(finite):
            raise ArgumentValueError("centers are NaN or infinite for all frames")
        nearest = np.hypot(*(finite - np.clip(np.rint(finite), 0, sig - 1)).T)
        farthest = np.hypot(*np.maximum(np.abs(finite), np.abs(sig - 1 - finite)).T)
        long = math.sqrt(self._ellipse["stretch"])
        most = 1 if outer is None else (outer + soft) * long
        if not ((farthest * long > inner - soft) & (nearest <= most)).any():
            raise ArgumentValueError(
                f"no frame of shape {tuple(shape.sig)} has a pixel between the radii {inner!r} and "
                f"{outer!r} pixels around its center, such as {tuple(finite[0].tolist())}"
            )

    def _check_center_inside(self) -> None:
        """Raise if the common center is far outside the frame, and no radius given to reach it."""
        center, sig = self._center, tuple(self.meta.dataset_shape.sig)
        pairs = zip(center, sig, strict=True)
        if math.hypot(*(min(max(round(float(c)), 0), n - 1) - c for c, n in pairs)) > 1:
            raise ArgumentValueError(
                f"the center (cy, cx) = {center} lies outside of frames of shape {sig}: numbers "
                "are in pixels. If the beam is there, pass the outer radius too"
            )


def centered(
    cy: Any, cx: Any, center: Any, centers: Any, stretch: Any, stretch_angle: Any, **more: Any
) -> dict[str, Any]:
    """Return the parameters of a `CenteredUDF`, checked, and more parameters between them."""
    cy, cx = read_center(center, cy, cx)
    check_stretch(stretch, stretch_angle)
    ellipse = {"stretch": stretch, "stretch_angle": stretch_angle}
    return {"cy": cy, "cx": cx, **more, "centers": as_centers(centers, cy=cy, cx=cx), **ellipse}


class RingUDF(CenteredUDF):
    """A UDF of the pixels in a disk or ring."""

    _detector_name: ClassVar[str]
    """Name of the mask in pictures."""
    _same_as: ClassVar[str] = ""
    """What gives the same result if all pixels are in the detector."""

    def _radii(self) -> dict[str, Any]:
        """Return the radius of a disk, or both radii of a ring, outer one last, by name."""
        raise NotImplementedError

    def _limits(self) -> tuple[Any, Any]:
        """Return the inner and the outer radius; a disk has None as the inner one."""
        *inner, outer = self._radii().values()
        return (inner[0] if inner else None), outer

    def _ring_around(self, center: tuple[Any, Any]) -> Ring:
        inner, outer = self._limits()
        return Ring(center, outer, inner, **self._ellipse)

    def _mask(self) -> AnyArray:
        return self._ring_around(self._center).mask(self.meta.dataset_shape.sig)

    def _check_pixels(self, words: str) -> None:
        """Raise if no frame has a pixel in the detector `words`, as far as radii are not lazy."""
        inner, outer = self._limits()
        if is_lazy(outer):
            return
        if is_lazy(inner):
            inner, words = None, f"disk of radius {outer!r}"
        if self._has_own_centers:
            most = None if outer == math.inf else outer
            self._check_centers(most, -1 if inner is None else inner)
        elif not any(map(is_lazy, self._center)):
            if outer == math.inf:
                self._check_center_inside()
            sig = tuple(self.meta.dataset_shape.sig)
            if not Ring(self._center, outer, inner, **self._ellipse).mask(sig).any():
                raise ArgumentValueError(
                    f"no pixel of frames of shape {sig} lies in the {words} around (cy, cx) = "
                    f"{self._center}: numbers are in pixels; correct the center or the radii"
                )

    def get_detector_masks(self) -> Mapping[str, AnyArray]:
        """Return the pixels of the detector, if centers vary of that around their mean."""
        center = self._center
        if self._has_own_centers:
            centers = self._finite_centers()
            if centers is None or not len(centers):
                raise ArgumentValueError(
                    f"the center of {type(self).__name__} varies with the scan and is not known: "
                    "compute centers first, or pass a common center for the picture"
                )
            center = tuple(centers.mean(axis=0).tolist())
        return {self._detector_name: self._ring_around(center).mask(self.meta.dataset_shape.sig)}

    def _coverages(self, sig: Shape) -> Sequence[Coverage]:
        """Return how much of a frame the detector covers; nothing if that is computed later."""
        center, radii = None if self._has_own_centers else self._center_in(sig), self._radii()
        if any(map(is_lazy, (*(center or ()), *radii.values()))):
            return ()
        covered, is_cut = measure(self._ring_around(center), sig) if center else (None, False)
        one = Coverage(
            shape="ring" if len(radii) > 1 else "disk",
            covered=covered,
            total=sig.size,
            radii={name: float(radius) for name, radius in radii.items()},
            center=center,
            stretch=float(self._ellipse["stretch"]),
            is_cut=is_cut,
            same_as=self._same_as,
        )
        return (one,)

    def _add_own_moments(self, tile: Any, radii: tuple[float | None, float], out: AnyArray) -> None:
        """Add sum(I), sum(y * I) and sum(x * I) of each frame to `out`, shape (frames, 3), float64.

        Pixels have ``inner < d <= outer``, or ``d <= outer``. `tile` is dense or sparse, and real.
        """
        part, ring = self.meta.sig_slice, (self._own_centers, self._rounding, radii)
        if self.meta._backend.is_sparse:
            from udfdask.kernels.cpu.centered_moments import add_entry_moments_about
            from udfdask.kernels.cpu.sparse_sums import entries_of

            add_entry_moments_about(entries_of(tile), part.origin, part.shape[1], ring, out)
        elif tile.size:
            from udfdask.kernels.cpu.centered_moments import add_moments_about

            add_moments_about(tile, part.origin, ring, out)
