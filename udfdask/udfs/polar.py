"""Unwrap frames: mean intensities over radius and angle."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.geometry.axes import Axis
from udfdask.masks import checks
from udfdask.masks.bins import BinMembers, find_members
from udfdask.masks.polar import rounded, rounding_matrix
from udfdask.udf.buffers import BufferSpec, Views
from udfdask.udfs.shared.built_in import SUMS
from udfdask.udfs.shared.rings import RingsUDF

_PARTS = replace(SUMS, streams_tiles=False)


class _PolarCellsUDF(RingsUDF):
    """A UDF of cells of equal size in radius and angle."""

    def __init__(
        self,
        cy: float | None = None,
        cx: float | None = None,
        r: float | None = None,
        ri: float = 0.0,
        n_bins: int | None = None,
        n_angles: int = 180,
        centers: Any = None,
        stretch: float = 1.0,
        stretch_angle: float = 0.0,
        center: Any = None,
    ) -> None:
        checks.integer("n_angles", n_angles, least=1)
        place = {"cy": cy, "cx": cx, "center": center, "centers": centers}
        ellipse = {"stretch": stretch, "stretch_angle": stretch_angle}
        super().__init__(r=r, ri=ri, n_bins=n_bins, n_angles=n_angles, **place, **ellipse)

    def _checked_shape(self) -> tuple[int, int]:
        """Return the number of rings and of angles; raise if no cell is in the frame."""
        return self._checked_rings(), self.params.n_angles

    def get_result_axes(self) -> Mapping[str, tuple[Axis, ...]]:
        step = 360 / self.params.n_angles
        angle = Axis(name="angle", unit="deg", scale=step, offset=step / 2)
        return {"intensity": (self._radius_axis(), angle)}

    def _members_about(self, center: tuple[float, float]) -> BinMembers:
        rings, ellipse = self._rings(), self._ellipse.values()
        return find_cells(center, self._frame_shape(), *rings, self.params.n_angles, *ellipse)

    def _per_cell(self, values: AnyArray) -> AnyArray:
        """Return values of cells, shape (..., cells), in the shape (..., rings, angles)."""
        return values.reshape(*values.shape[:-1], -1, self.params.n_angles)

    def _add_up(self, tile: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Return sum(w * I) of each cell, float64, and sum(w) if each frame has its own center.

        Both have the shape (frames, rings, angles). Without a finite center, sums are NaN.
        """
        cells = self._rings()[2] * self.params.n_angles
        sums, covered = np.zeros((len(tile), cells)), np.zeros((len(tile), cells))
        if not self._has_own_centers:
            self._add_ring_sums(tile, sums, None)
            return self._per_cell(sums), covered
        origin, shape = self.meta.sig_slice.origin, tile.shape[1:]
        for k, center in enumerate(self._own_centers.tolist()):
            if not all(map(math.isfinite, center)):
                sums[k] = np.nan
                continue
            inside = self._members_about(center).within(origin, shape)
            values = tile[k, inside.y - origin[0], inside.x - origin[1]].astype(np.float64)
            cell = np.repeat(np.arange(cells), np.diff(inside.bounds))
            sums[k] = np.bincount(cell, inside.weight * values, cells)
            covered[k] = inside.totals
        return self._per_cell(sums), self._per_cell(covered)


class PolarUDF(_PolarCellsUDF):
    """Unwrap each frame to polar coordinates: the mean over cells in radius and angle.

    Parameters
    ----------
    cy, cx, r, ri, n_bins : optional
        As for `RadialProfileUDF`: by default, rings about one pixel wide cover the whole frame.
    n_angles : int
        Number of cells of equal angles in a ring.
    centers, stretch, stretch_angle, center : optional
        As for `RadialProfileUDF`.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        As for `RadialProfileUDF`; if `n_angles` is not a positive integer.

    See Also
    --------
    PolarMeanUDF : Unwraps the mean of the frames.
    fit_ellipse : Finds the ellipse with which rings become straight lines.

    Notes
    -----
    Buffer `intensity`, kind nav, shape (*nav, n_bins, n_angles), float32: ``sum w I / sum w`` over
    the pixels. Angles increase from +x toward +y, which points down; those of an ellipse are angles
    in the coordinates in which it is round. A cell without a pixel is NaN.

    The weight `w` of a pixel is the part of it in a cell: that in the ring, as in
    `RadialProfileUDF`, times the part of an arc of one pixel that is in the cell. So all pixels
    count, each of them once. The mean over the angles, weighted by `sum w`, is the radial profile.
    Interpolation at the middle of each cell would leave out pixels of the outer rings, and repeat
    those of the inner ones. With `centers`, the weights of each frame take many times as long.

    Examples
    --------
    >>> import dask.array as da, numpy as np, udfdask as ud
    >>> from udfdask.analyses import PolarUDF
    >>> y, x = np.mgrid[-8:9, -8:9]
    >>> frames = da.from_array(np.broadcast_to(y > 0, (2, 3, 17, 17)), chunks=(1, 3, 17, 17))
    >>> polar = ud.run_udf(frames, PolarUDF(r=8, ri=4, n_bins=2, n_angles=4))["intensity"]
    >>> print(polar.shape, polar[0, 0, 1].compute().round(2))
    (2, 3, 2, 4) [0.95 0.95 0.   0.  ]
    """

    keeps_units = ("intensity",)
    elementwise_results = True
    promises = _PARTS

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        shape = self._checked_shape()
        if self._has_own_centers:
            return self._declare_means("nav", shape, "float32")
        return {"intensity": self.buffer("nav", shape)}

    def process_tile(self, tile: Any) -> None:
        if not tile.size:
            return
        sums, covered = self._add_up(tile)
        if self._has_own_centers:
            self.results.sums += sums
            self.results.covered += covered
        else:
            with np.errstate(invalid="ignore"):  # a cell without a pixel
                self.results.intensity += sums / self._per_cell(self.task_data.members.totals)

    def get_results(self) -> Mapping[str, Any]:
        """Divide by the weight of each cell around the frame's own center."""
        return self._means() if self._has_own_centers else {}


class PolarMeanUDF(_PolarCellsUDF):
    """Unwrap the mean of all frames to polar coordinates, also if each frame has its own center.

    Parameters
    ----------
    cy, cx, r, ri, n_bins, n_angles, centers, stretch, stretch_angle, center : optional
        As for `PolarUDF`.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        As for `PolarUDF`.

    Notes
    -----
    Buffer `intensity`, kind single, shape (n_bins, n_angles), float64: ``sum w I / sum w`` over the
    pixels of all frames, with the weights of `PolarUDF`. Frames whose center is not finite are left
    out.

    Examples
    --------
    >>> import dask.array as da, numpy as np, udfdask as ud
    >>> from udfdask.analyses import PolarMeanUDF
    >>> y, x = np.mgrid[-8:9, -8:9]
    >>> frames = da.from_array(np.stack([y > 0, x > 0]))
    >>> polar = ud.run_udf(frames, PolarMeanUDF(r=8, ri=4, n_bins=2, n_angles=4))["intensity"]
    >>> print(polar[1].compute().round(2))
    [0.95 0.48 0.   0.48]
    """

    keeps_units = ("intensity",)
    promises = replace(_PARTS, merge_only_reads_src=True)

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        return self._declare_means("single", self._checked_shape(), "float64")

    def process_tile(self, tile: Any) -> None:
        if not tile.size:
            return
        if self._has_own_centers:
            known = np.isfinite(self._own_centers).all(axis=1)
            sums, covered = self._add_up(tile)
            self.results.sums += sums[known].sum(axis=0)
            self.results.covered += covered[known].sum(axis=0)
            return
        part = self.task_data.members.within(self.meta.sig_slice.origin, tile.shape[1:])
        total = tile.sum(axis=0, dtype=np.float64, keepdims=True)
        self.results.sums += self._add_up(total)[0][0]
        self.results.covered += len(tile) * self._per_cell(part.totals)

    def merge(self, dest: Views, src: Views) -> None:
        dest.sums += src.sums
        dest.covered += src.covered

    def get_results(self) -> Mapping[str, Any]:
        return self._means()


def find_cells(
    center: tuple[float, float],
    sig: tuple[int, int],
    r: float,
    ri: float,
    rings: int,
    angles: int,
    stretch: float = 1.0,
    stretch_angle: float = 0.0,
) -> BinMembers:
    """Return the pixels of cells of equal size in radius and angle, ring by ring.

    Each pixel of a ring of `find_members` is shared between cells, as an arc of one pixel.
    """
    members = find_members(center, sig, r, ri, rings, stretch, stretch_angle)
    offsets = members.y - center[0], members.x - center[1]
    y, x = rounded(rounding_matrix(stretch, stretch_angle), *offsets)
    cells_per_turn = angles / (2 * math.pi)
    middle = np.arctan2(y, x) * cells_per_turn
    with np.errstate(divide="ignore", over="ignore"):  # the pixel in the center is a whole turn
        half = np.minimum(0.5 / np.hypot(y, x) * cells_per_turn, angles / 2)
    first = np.floor(middle - half).astype(np.int64)
    counts = np.ceil(middle + half).astype(np.int64) - first
    entry = np.repeat(np.arange(len(counts)), counts)
    angle = np.arange(len(entry)) - np.repeat(np.cumsum(counts) - counts, counts) + first[entry]
    low, high = (middle - half)[entry], (middle + half)[entry]
    share = (np.minimum(angle + 1, high) - np.maximum(angle, low)) / (high - low)
    ring = np.repeat(np.arange(rings), np.diff(members.bounds))[entry]
    cell = ring * angles + angle % angles
    order = np.argsort(cell, kind="stable")
    bounds = np.append(0, np.cumsum(np.bincount(cell, minlength=rings * angles)))
    entry = entry[order]
    weight = members.weight[entry] * share[order]
    return BinMembers(bounds=bounds, y=members.y[entry], x=members.x[entry], weight=weight)
