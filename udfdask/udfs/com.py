"""Compute the center of mass of each frame, and the field that deflects the beam."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from udfdask.base.once_per_process import OncePerProcess
from udfdask.base.types import AnyArray, is_lazy
from udfdask.errors import ArgumentValueError
from udfdask.geometry.axes import Axis, Calibration, shared_unit, steps
from udfdask.geometry.shapes import Shape
from udfdask.geometry.units import unit_of_quotient
from udfdask.kernels.cpu import vector_field
from udfdask.kernels.cuda.sums import add_first_moments
from udfdask.masks.coverage import Coverage
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.meta import UDFMeta
from udfdask.udf.tile_sums import TileSums
from udfdask.udfs.shared.built_in import ALL_TILES, SUMS, check_flag
from udfdask.udfs.shared.centered import RingUDF, centered
from udfdask.udfs.shared.com_corrections import (
    correction_matrix,
    degrees,
    read_regression,
    wrong_order,
)
from udfdask.udfs.shared.geometry_parameters import is_open, read_radii

VECTORS = ("raw_com", "raw_shifts", "field")
"""The results that contain (y, x) vectors."""


class CoMUDF(RingUDF):
    """Compute the center of mass of each frame, and the field of differential phase contrast.

    Parameters
    ----------
    cy, cx : float, optional
        Center of the mask and origin of the shifts, in pixels, as for `RadialProfileUDF`.
    r, ri : float
        Outer and inner radius of the mask, in pixels: ``ri < d <= r``, or the full disk if `ri` is
        0; by default the whole frame.
    scan_rotation : float
        Angle in degrees by which shifts are rotated, clockwise on a screen: +90 maps +x to +y.
    flip_y : bool
        Flip the y axis of shifts before the rotation.
    regression : {-1, 0, 1} or array-like, shape (3, 2)
        Background to subtract from the field: none (-1), its mean (0), the plane that fits best
        (1), or a given plane ``[[y, x], [dy/dy, dx/dy], [dy/dx, dx/dx]]``.
    centers, stretch, stretch_angle, center : optional
        Centers of the frames, an ellipse, and a center in place of `cy` and `cx`, as there.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If a parameter is wrong; in `run_udf`, if frames are not 2-D or not real, no pixel is in the
        mask, or `centers` or `regression` does not fit the scan.

    See Also
    --------
    guess_corrections : Guesses the angle, the flip and the center.
    to_beam_shift : Converts shifts to pyxem's convention.

    Notes
    -----
    Lengths and the center may be given in the unit of the signal axes, such as ``r="8 mrad"``.

    Result buffers of kind nav, float64; vectors are (y, x). `raw_com` and `raw_shifts` are in
    pixels. The field and what follows from it are in the unit of the signal axes if these share
    one, its derivatives per unit of the scan axes; otherwise in pixels, and per scan position:

    - `raw_com`, shape (*nav, 2): ``(sum y I, sum x I) / sum I`` over the mask
    - `raw_shifts`, shape (*nav, 2): ``raw_com - (cy, cx)``; 0 where ``sum I`` is 0
    - `field`, shape (*nav, 2): ``R @ F @ shifts - [1, y, x] @ regression``, where `shifts` are
      `raw_shifts` in the unit of the field, y and x are numbers of scan positions,
      ``F = diag(-1, 1)`` if `flip_y`, ``R = [[cos, sin], [-sin, cos]]``
    - `field_y`, `field_x`, `magnitude`, shape nav: its components and their length
    - `divergence`, shape nav: ``gradient(field_y, axis=0) + gradient(field_x, axis=1)`` per step
    - `curl`, shape nav: ``gradient(field_y, axis=1) - gradient(field_x, axis=0)`` per step

    and `regression` of kind single, shape (3, 2), float64: the plane that was subtracted. The last
    three exist for 2-D scans with at least 2 positions along each axis.

    All are NaN outside the ROI, for frames whose center is not finite, and in snapshots for frames
    that are not merged yet; `divergence` and `curl` also if a neighbor is NaN. Sums are float64,
    exact for data of up to 16 bits. Pixels outside the mask can be NaN.

    Examples
    --------
    >>> import dask.array as da, numpy as np, udfdask as ud
    >>> from udfdask.udfs import CoMUDF
    >>> frames = np.zeros((2, 3, 8, 8), dtype="uint16")
    >>> frames[:, :, 5, 2:4] = 10  # a spot around (5, 2.5)
    >>> result = ud.run_udf(da.from_array(frames, chunks=(1, 3, 8, 8)), CoMUDF(r=4))
    >>> print(result["raw_com"][0, 0].compute(), result["raw_shifts"][0, 0].compute())
    [5.  2.5] [ 1.  -1.5]
    """

    default_plots: ClassVar[tuple[str, ...]] = ("field", "magnitude")
    promises = replace(SUMS, processes_sums=True)
    _kernels = ALL_TILES
    _detector_name = "center of mass"

    def __init__(
        self,
        cy: float | None = None,
        cx: float | None = None,
        r: float = math.inf,
        ri: float | None = 0.0,
        scan_rotation: float = 0.0,
        flip_y: bool = False,
        regression: Any = -1,
        centers: Any = None,
        stretch: float = 1.0,
        stretch_angle: float = 0.0,
        center: Any = None,
    ) -> None:
        r, ri = read_radii(r=r, ri=ri, finite=False)
        scan_rotation = scan_rotation if is_lazy(scan_rotation) else degrees(scan_rotation)
        flip_y = flip_y if is_lazy(flip_y) else check_flag("flip_y", flip_y)
        regression = regression if is_lazy(regression) else read_regression(regression)
        own = {"scan_rotation": scan_rotation, "flip_y": flip_y, "regression": regression}
        place = cy, cx, center, centers, stretch, stretch_angle
        super().__init__(**centered(*place, r=r, ri=ri, **own))
        # the shared sums are those of whole frames
        if centers is not None or not self._is_everything:
            self.process_sums = None  # type: ignore[method-assign, assignment]

    @classmethod
    def with_params(cls, **params: Any) -> CoMUDF:
        """Return ``CoMUDF(**params)``, for code that was written for LiberTEM.

        Parameters
        ----------
        **params
            The parameters of `CoMUDF`.

        Returns
        -------
        CoMUDF
            The UDF.

        Examples
        --------
        >>> from udfdask.udfs import CoMUDF
        >>> CoMUDF.with_params(cy=8, cx=8, r=5).params.cy
        8
        """
        return cls(**params)

    def _radii(self) -> dict[str, Any]:
        r, ri = self._kwargs["r"], self._kwargs["ri"]
        return {"ri": ri, "r": r} if is_lazy(ri) or ri else {"r": r}

    @property
    def _is_everything(self) -> bool:
        """Whether the mask covers the whole frame, as far as is known before a run."""
        r, ri = self._kwargs["r"], self._kwargs["ri"]
        return not (is_open(r) or is_open(ri)) and r == math.inf and not ri

    @property
    def _is_scan(self) -> bool:
        """Whether the scan is 2-D and large enough for derivatives along both axes."""
        nav = self.meta.dataset_shape.nav
        return len(nav) == 2 and min(nav) >= 2

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        p = self.params
        self._frame_shape()
        self._check_pixels(f"ring ri={p.ri!r} < d <= r={p.r!r}")
        scalars = ["field_y", "field_x", "magnitude"]
        if self._is_scan:
            scalars += ["divergence", "curl"]
        elif is_lazy(p.regression) or np.ndim(p.regression) or p.regression != -1:
            raise ArgumentValueError(
                "regression needs a 2-D scan with at least 2 positions along each axis, but the "
                f"navigation shape is {tuple(self.meta.dataset_shape.nav)}: leave it out"
            )
        own = self._has_own_centers
        nav = partial(self.buffer, "nav", dtype="float64")
        buffers = {"moments": nav(extra_shape=(3,), use="private", where=None if own else "device")}
        buffers |= {name: nav(extra_shape=(2,), use="result_only") for name in VECTORS}
        buffers |= {name: nav(use="result_only") for name in scalars}
        if self._is_scan:
            buffers["regression"] = self.buffer("single", (3, 2), "float64", use="result_only")
        if own:
            buffers["origins"] = nav(extra_shape=(2,), use="private")
        return buffers

    def get_result_axes(self) -> Mapping[str, tuple[Axis, ...]]:
        vector = Axis(name="component", labels=("y", "x"))
        axes: dict[str, tuple[Axis, ...]] = dict.fromkeys(VECTORS, (vector,))
        if self._is_scan:
            axes["regression"] = (Axis(name="term", labels=("1", "y", "x")), vector)
        return axes

    def get_result_units(self) -> Mapping[str, str | None]:
        """Name the units: pixels for centers and shifts, those of the axes for the field."""
        unit = shared_unit(self.meta.axes[-2:]) or "px"
        units: dict[str, str | None] = {"raw_com": "px", "raw_shifts": "px"}
        units |= dict.fromkeys(("field", "field_y", "field_x", "magnitude"), unit)
        if self._is_scan:
            per = shared_unit(self.meta.axes[:-2]) or "position"
            units |= dict.fromkeys(("divergence", "curl"), unit_of_quotient(unit, per))
        return units

    def _warnings(self, calibration: Calibration) -> Sequence[str]:
        text = wrong_order(calibration.axes)
        return (text,) if text else ()

    def _coverages(self, sig: Shape) -> Sequence[Coverage]:
        return () if self._is_everything else super()._coverages(sig)

    def get_shared_task_data(self) -> Mapping[str, Any]:
        """Return the mask; on the CPU also its pixels row by row, and a cache for tiles."""
        if self._has_own_centers:
            return {}
        mask = self._mask()
        if self.meta._backend.on_device:
            return {"mask": None if mask.all() else self.xp.asarray(mask)}
        from udfdask.kernels.cpu.first_moments import spans_of

        return {"mask": mask, "spans": spans_of(mask), "cut": OncePerProcess(2048)}

    def process_tile(self, tile: Any) -> None:
        p, part, moments = self.params, self.meta.sig_slice, self.results.moments
        if self._has_own_centers:
            self._add_own_moments(tile, (p.ri or None, p.r), moments)
            if not any(part.origin):  # buffers of signal parts are added up
                self.results.origins += self._own_centers
        elif self.meta._backend.is_sparse:
            from udfdask.kernels.cpu.first_moments import add_entry_first_moments
            from udfdask.kernels.cpu.sparse_sums import entries_of

            data = self.task_data
            inside = data.cut.get(part, lambda: _flat_mask(data.mask[part.get()]))
            add_entry_first_moments(entries_of(tile), part.origin, part.shape[1], inside, moments)
        elif tile.size and self.meta._backend.on_device:
            mask = self.task_data.mask
            inside = None if mask is None else mask[part.get()]
            add_first_moments(tile, inside, part.origin, moments)
        elif tile.size:
            self._add_pixels(tile)

    def _add_pixels(self, tile: Any) -> None:
        from udfdask.kernels.cpu.first_moments import add_moments, cover
        from udfdask.kernels.numba_internals.rows import as_native, rows_in_memory

        tile, turn = as_native(tile)
        flat, frame_step, row_step = rows_in_memory(tile)
        data, place = self.task_data, (self.meta.sig_slice.origin, tile.shape[1:], row_step)
        where = data.cut.get(place, lambda: cover(data.spans, *place))
        add_moments(flat, frame_step, turn, where, self.results.moments)

    def process_sums(self, sums: TileSums) -> None:
        """Add the sum and the first moments of each frame's part, which other UDFs use too."""
        total, y, x = sums.of_frames.T
        top, left = self.meta.sig_slice.origin
        self.results.moments += np.stack([total, y + top * total, x + left * total], axis=1)

    def get_results(self) -> Mapping[str, Any]:
        p = self.params
        origins = self.results.origins if self._has_own_centers else self._center
        valid = self.meta.get_valid_nav_mask()
        with np.errstate(invalid="ignore", over="ignore"):  # frames can contain NaN or infinity
            raw_com, raw_shifts = vector_field.centers(self.results.moments, origins)
            raw_com[~valid] = raw_shifts[~valid] = np.nan
            # pixels of other sizes along y and x would not rotate as vectors do
            shifts = raw_shifts * steps(self.meta.axes[-2:])
            field = shifts @ correction_matrix(p.scan_rotation, bool(p.flip_y)).T
            results: dict[str, Any] = {}
            if self._is_scan:
                plane = np.zeros((3, 2))
                if np.ndim(p.regression):
                    plane = np.asarray(p.regression, dtype=np.float64)
                elif p.regression != -1:
                    plane = vector_field.fit_plane(self.meta.coordinates, field, int(p.regression))
                results["regression"] = plane
                if plane.any():
                    field -= plane[0] + self.meta.coordinates @ plane[1:]
            results |= self.get_field_results(*over_scan(self.meta, field))
        vectors = {"raw_com": raw_com, "raw_shifts": raw_shifts, "field": field}
        return {**vectors, "field_y": field[:, 0], "field_x": field[:, 1], **results}

    def get_field_results(self, field_y: Any, field_x: Any) -> Mapping[str, Any]:
        """Compute the results that depend on the field; subclasses can override this method.

        Parameters
        ----------
        field_y, field_x : numpy.ndarray, shape nav, float64
            Components of the field, NaN outside the ROI and for frames that are not merged yet.

        Returns
        -------
        mapping of str to array
            `magnitude` and, for a 2-D scan, `divergence` and `curl`; shape nav.

        Examples
        --------
        >>> import dask.array as da, numpy as np, udfdask as ud
        >>> from udfdask.udfs import CoMUDF
        >>> class AngleUDF(CoMUDF):
        ...     def get_result_buffers(self):
        ...         angle = self.buffer(kind="nav", dtype="float64", use="result_only")
        ...         return {**super().get_result_buffers(), "angle": angle}
        ...     def get_field_results(self, field_y, field_x):
        ...         results = super().get_field_results(field_y, field_x)
        ...         return {**results, "angle": np.arctan2(field_y, field_x)}
        >>> ud.run_udf(da.ones((2, 3, 8, 8)), AngleUDF(cy=3, cx=3))["angle"].compute()[0].round(3)
        array([0.785, 0.785, 0.785])
        """
        results: dict[str, Any] = {"magnitude": np.hypot(field_y, field_x)}
        if self._is_scan:
            known, distances = ~np.isnan(field_y + field_x), steps(self.meta.axes[:-2])
            for name in ("divergence", "curl"):
                # np.gradient at a position uses its neighbors only, so it can be finite there
                derivative = getattr(vector_field, name)(field_y, field_x, distances)
                values = np.where(known, derivative, np.nan)
                results[name] = self.with_mask(values, ~np.isnan(values))
        return results


def over_scan(meta: UDFMeta, vectors: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return the components of the vectors of all rows in the shape of the scan, NaN elsewhere."""
    nav, roi = meta.dataset_shape.nav, meta.roi
    full = np.full((nav.size, 2), np.nan)
    full[... if roi is None else roi.reshape(-1)] = vectors
    return full[:, 0].reshape(tuple(nav)), full[:, 1].reshape(tuple(nav))


def _flat_mask(mask: AnyArray) -> AnyArray | None:
    """Return a mask, flat and as uint8 for the kernel; None if all values are True."""
    if mask.all():
        return None
    flat = np.ascontiguousarray(mask).view(np.uint8).reshape(-1)
    flat.flags.writeable = False  # compiled code only exists for read-only arrays
    return flat
