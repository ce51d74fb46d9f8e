"""Sum the pixels in a virtual detector: a simple shape, or a mask."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from udfdask.base.once_per_process import OncePerProcess
from udfdask.base.types import AnyArray
from udfdask.errors import ArgumentValueError
from udfdask.geometry.shapes import Shape
from udfdask.kernels.cuda.sums import add_within
from udfdask.kernels.overflow import add_exactly
from udfdask.masks.coverage import Coverage
from udfdask.masks.dense_product import as_added_up, product_dtype, signed_if_fits
from udfdask.udf.buffers import BufferSpec
from udfdask.udfs.shared.built_in import ALL_TILES, SUMS
from udfdask.udfs.shared.centered import RingUDF
from udfdask.udfs.shared.detector_shapes import (
    CENTERED,
    NEEDED,
    DetectorShape,
    check_axes,
    pixels_of,
    read_detector,
)


class VirtualDetectorUDF(RingUDF):
    """Sum the pixels of each frame in a disk, a ring, a rectangle or a window.

    Parameters
    ----------
    shape : {"disk", "ring", "rect", "point", "window"} or array of bool, shape `sig`
        Shape of the detector. A window is for spectra, which have one signal axis. A mask is True
        for the pixels of the detector, dense or sparse; the numbers 0 and 1 will do as well. The
        accessors of DataArrays and signals also take DataArrays, signals and ROIs of HyperSpy.
    cx, cy : float, optional
        Center of a disk or ring, in pixels, as for `RadialProfileUDF`.
    r : float, optional
        Radius of a disk, in pixels: ``d <= r``.
    ri, ro : float, optional
        Inner and outer radius of a ring, in pixels: ``ri < d <= ro``.
    x, y : float, optional
        First pixel of a rectangle, or the pixel of a point; fractions are rounded down.
    width, height : float, optional
        Size of a rectangle, in pixels, at least 1; fractions are rounded down.
    start, stop : float, optional
        Channels of a window: ``start <= i < stop``.
    centers, stretch, stretch_angle, center : optional
        Centers of the frames, an ellipse, and a center in place of `cy` and `cx`, as there.
    **unknown : object
        Nothing else is taken: the error names the parameters of the shape.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If a parameter is missing, wrong, or does not belong to the shape; in `run_udf`, if no pixel
        is in the detector, `centers` does not fit the scan, or a mask does not fit the frames.

    See Also
    --------
    ApplyMasksUDF : Applies any number of masks, also with weights.

    Notes
    -----
    All numbers may be given in the unit of the signal axes, such as ``ri="10 mrad"``.

    Buffer `intensity`, kind nav, shape `nav`, in the unit of the data, with dtype and errors as of
    `ApplyMasksUDF`. Pixels outside the detector can be NaN. With `centers`, sums of integers are
    float64, exact up to 2**53: NaN for a frame whose center is not finite, 0 without a pixel.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import VirtualDetectorUDF
    >>> x = da.ones((2, 3, 16, 16), dtype="uint16", chunks=(1, 3, 16, 16))
    >>> bright = VirtualDetectorUDF("disk", r=3)
    >>> dark = VirtualDetectorUDF("ring", cx=7.5, cy=7.5, ri=5, ro=7)
    >>> bright_field, dark_field = ud.compute(*ud.run_udf(x, [bright, dark]))
    >>> print(bright_field["intensity"][1, 2], dark_field["intensity"][1, 2])
    29 76
    """

    keeps_units = ("intensity",)
    calibrated: ClassVar[Mapping[str, str]] = {
        **RingUDF.calibrated,
        "ro": "length",
        "x": "left",
        "y": "top",
        **{name: name for name in ("width", "height", "start", "stop")},
    }
    promises = SUMS
    _kernels = ALL_TILES
    _mask_parameter = "shape"
    _same_as = "SumSigUDF"

    def __init__(
        self,
        shape: DetectorShape | Any = "disk",
        *,
        cx: float | None = None,
        cy: float | None = None,
        r: float | None = None,
        ri: float | None = None,
        ro: float | None = None,
        x: float | None = None,
        y: float | None = None,
        width: float | None = None,
        height: float | None = None,
        start: float | None = None,
        stop: float | None = None,
        centers: Any = None,
        stretch: float | None = None,
        stretch_angle: float | None = None,
        center: Any = None,
        **unknown: Any,
    ) -> None:
        place, radii = {"cx": cx, "cy": cy}, {"r": r, "ri": ri, "ro": ro}
        rectangle = {"x": x, "y": y, "width": width, "height": height}
        window = {"start": start, "stop": stop}
        ellipse = {"stretch": stretch, "stretch_angle": stretch_angle}
        numbers: dict[str, Any] = {**place, **radii, **rectangle, **window}
        numbers |= {"centers": centers, **ellipse, "center": center}
        given = {name: value for name, value in numbers.items() if value is not None}
        read = read_detector(shape, given, unknown)
        # in one order, so that a center and its two coordinates give one name
        super().__init__(shape=shape, **{name: read[name] for name in numbers if name in read})

    @property
    def _is_round(self) -> bool:
        """Whether it is a disk or ring, which have a center."""
        return self._detector_name in CENTERED

    @property
    def _detector_name(self) -> str:  # type: ignore[override]
        return self._kwargs["shape"] if isinstance(self._kwargs["shape"], str) else "mask"

    def _center_names(self) -> tuple[str, ...]:
        return super()._center_names() if self._is_round else ()

    def _radii(self) -> dict[str, Any]:
        return {name: self._kwargs[name] for name in NEEDED[self._kwargs["shape"]]}

    def _mask(self) -> AnyArray:
        sig, shape = self.meta.dataset_shape.sig, self._kwargs["shape"]
        check_axes(shape, sig)
        return super()._mask() if self._is_round else pixels_of(shape, self._kwargs, sig)[0]

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        dtype = product_dtype(self.meta.input_dtype, np.dtype(bool))
        n = int(np.count_nonzero(self._mask()))  # the mask checks the numbers, too
        if self._has_own_centers:
            self._frame_shape(kinds="biufc")
            self._check_pixels("detector")
            # there is no integer for a frame without a center
            dtype = dtype if dtype.kind in "fc" else np.dtype(np.float64)
            return {"intensity": self.buffer(kind="nav", dtype=dtype)}
        if self._is_round and self._limits()[1] == math.inf:
            self._check_center_inside()
        if not n:
            numbers = [f"{name}={value}" for name, value in list(self._kwargs.items())[1:]]
            words = ": it is False everywhere"
            if numbers:
                words = f", {', '.join(numbers)}: numbers are in pixels, x to the right and y down"
            raise ArgumentValueError(
                f"no pixel of a frame of shape {tuple(self.meta.dataset_shape.sig)} lies in the "
                f"detector {self._detector_name}{words}"
            )
        dtype = signed_if_fits(dtype, self.meta.input_dtype, n)
        return {"intensity": self.buffer(kind="nav", dtype=dtype, where="device")}

    def get_detector_masks(self) -> Mapping[str, AnyArray]:
        if self._is_round:
            return super().get_detector_masks()
        return {self._detector_name: self._mask()}

    def _coverages(self, sig: Shape) -> Sequence[Coverage]:
        if self._is_round:
            return super()._coverages(sig)
        mask, is_cut = pixels_of(self._kwargs["shape"], self._kwargs, sig)
        covered, name = int(np.count_nonzero(mask)), self._detector_name
        return (Coverage(shape=name, covered=covered, total=sig.size, is_cut=is_cut),)

    def get_shared_task_data(self) -> Mapping[str, Any]:
        """Compute the mask, and a cache for the pixels in each tile."""
        if self._has_own_centers:
            return {}
        inside = self._mask()
        if self.meta._backend.on_device:
            return {"inside": self.meta._backend.dense.share(inside)}
        return {"inside": inside, "groups": OncePerProcess(2048)}

    def process_tile(self, tile: Any) -> None:
        part = self.meta.sig_slice.get()
        if self._has_own_centers:
            self._add_about_own_centers(tile)
        elif self.meta._backend.is_sparse:
            from udfdask.kernels.cpu.sparse_sums import add_entries_inside, entries_of

            inside = np.ascontiguousarray(self.task_data.inside[part]).view(np.uint8).reshape(-1)
            total = as_added_up(self.results.intensity, self.meta.input_dtype)
            add_entries_inside(entries_of(tile), inside, total)
        elif self.meta._backend.on_device:
            add_within(tile, self.task_data.inside[part], self.results.intensity)
        else:
            self._add_pixels(tile)

    def _add_about_own_centers(self, tile: Any) -> None:
        out, is_complex = self.results.intensity, np.dtype(tile.dtype).kind == "c"
        pairs = ((tile.real, out.real), (tile.imag, out.imag)) if is_complex else ((tile, out),)
        for part, sums in pairs:
            moments = np.zeros((len(out), 3))
            self._add_own_moments(part, self._limits(), moments)
            sums[:] += moments[:, 0].astype(sums.dtype)

    def _add_pixels(self, tile: Any) -> None:
        from udfdask.kernels.cpu.detector_sums import detector_groups, sum_detector

        data, part = self.task_data, self.meta.sig_slice
        inside = data.inside[part.get()]
        if inside.ndim == 1:  # a spectrum is a frame with one row
            inside, tile = inside[np.newaxis], tile[:, np.newaxis]

        def groups(row_step: int) -> Any:
            key = part.origin, tuple(part.shape), row_step
            return data.groups.get(key, lambda: detector_groups(inside, row_step))

        sums = sum_detector(tile, inside, groups)
        add_exactly(self.results.intensity, sums.astype(self.results.intensity.dtype))
