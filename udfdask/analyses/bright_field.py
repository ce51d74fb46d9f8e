"""The beams of the bright field, and UDFs that use them or add their images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import fft

from udfdask.analyses.aberrations import Aberrations
from udfdask.analyses.shifted_sum import ShiftedSum
from udfdask.base.once_per_process import OncePerProcess
from udfdask.base.types import AnyArray, is_lazy
from udfdask.errors import ArgumentValueError
from udfdask.geometry.axes import Axis, shared_unit, steps
from udfdask.geometry.electrons import factor_at, wavelength
from udfdask.geometry.units import Quantity, as_quantity
from udfdask.masks import checks
from udfdask.udf.buffers import BufferSpec
from udfdask.udfs.shared.built_in import check_scan
from udfdask.udfs.shared.centered import CenteredUDF
from udfdask.udfs.shared.geometry_parameters import read_center

DAMPING = 0.5
"""Contrast of waves, for a phase of 1 rad, at which these are damped to one half. With less,
noise and higher orders of strong phases grow where there is nearly no contrast."""


@dataclass(frozen=True, slots=True)
class Beams:
    """The bright field, and what is known about the microscope."""

    center: AnyArray
    """Center (y, x) in pixels."""
    pixels: AnyArray
    """Pixels (y, x), int, shape (pixels, 2)."""
    pitch: AnyArray
    """Size (y, x) of a pixel in radians."""
    steps: AnyArray
    """Distances between scan positions (y, x), in nm."""
    wavelength: float
    """Wavelength in nm."""

    @property
    def angles(self) -> AnyArray:
        """Angles (y, x) of the pixels in radians, shape (pixels, 2)."""
        return np.asarray((self.pixels - self.center) * self.pitch)

    @property
    def largest(self) -> float:
        """Largest frequency in the aperture, in 1/nm."""
        return float(np.hypot(*self.angles.T).max()) / self.wavelength


class BrightFieldUDF(CenteredUDF):
    """A UDF of the pixels of the bright field: a disk, whose radius is the convergence angle."""

    calibrated: ClassVar[Mapping[str, str]] = {"cy": "y", "cx": "x", "semiangle": "length"}
    _least_scan: ClassVar[int] = 2
    _can_be_cut: ClassVar[bool] = False
    """Whether a part of the bright field can be outside of the frames."""

    def __init__(self, *, semiangle: Any, cy: Any, cx: Any, center: Any, **more: Any) -> None:
        semiangle = as_quantity("semiangle", semiangle)
        is_length = isinstance(semiangle, Quantity)
        checks.radius("semiangle", semiangle.value if is_length else semiangle, positive=True)
        cy, cx = read_center(center, cy, cx)
        for name, given in (("cy", cy), ("cx", cx)):
            if is_lazy(given):  # a plan needs the beams
                checks.number(name, given)
        super().__init__(semiangle=semiangle, cy=cy, cx=cx, **more)

    def _beams(self) -> Beams:
        """Return the beams of a run; raise if they are not known."""
        sig = self._frame_shape()
        check_scan(self, self._least_scan)
        if self.meta.voltage is None:
            name = type(self).__name__
            raise ArgumentValueError(f"{name} needs the voltage: pass voltage='300 kV'")
        center, r = np.array(self._center, float), float(self.params.semiangle)
        (cy, cx), (y, x) = center, np.indices(sig)
        pixels = np.argwhere(np.hypot(y - cy, x - cx) <= r)
        is_cut = bool((center - r < -1).any() or (center + r > sig).any())
        is_large = 2 * r > min(sig) if self._can_be_cut else is_cut
        if is_large or len(pixels) < 2:
            fault = f"larger than the frames of shape {sig}" if is_large else "less than 2 pixels"
            raise ArgumentValueError(
                f"the bright field, a disk of radius {r:g} pixels around (cy, cx) = ({cy:g}, "
                f"{cx:g}), is {fault}: correct the semiangle or the center"
            )
        pitch = self._steps_in("rad", "frames", self.meta.axes[2:])
        if np.ptp(np.abs(pitch)) > 1e-6 * np.abs(pitch).max():
            raise ArgumentValueError(f"pixels must be square, not {pitch} rad: correct axes=")
        return Beams(
            center=center,
            pixels=pixels,
            steps=self._steps_in("nm", "scan", self.meta.axes[:2]),
            pitch=pitch,
            wavelength=wavelength(self.meta.voltage),
        )

    def _steps_in(self, unit: str, what: str, axes: tuple[Axis, ...]) -> AnyArray:
        """Return the steps (y, x) of axes in a unit; raise if they have none that fits."""
        try:
            scale = factor_at(self.meta.voltage, shared_unit(axes) or "px", unit)
        except ValueError:
            raise ArgumentValueError(
                f"{type(self).__name__} needs a scale in {unit} or a unit that fits for the axes "
                f"of the {what}, but their units are {[axis.unit for axis in axes]}: pass "
                "axes=[udfdask.Axis(name=..., unit=..., scale=...), ...] (--scale in a shell)"
            ) from None
        return scale * np.array(steps(axes))

    def _bright_field(self, tile: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Return the bright field of a tile, shape (frames, pixels), and what pixels it has."""
        pixels, number = self._bright_pixels()
        return tile.reshape((len(tile), -1)).take(pixels, axis=1), number

    def _bright_pixels(self) -> Any:
        """Return the pixels of the bright field in a tile, as flat indices, and their numbers.

        They are sorted by `number` of the task data, in which other pixels are -1.
        """
        data, part = self.task_data, self.meta.sig_slice

        def cut() -> tuple[AnyArray, AnyArray]:
            number = data.number[part.get()].ravel()
            pixels = np.argsort(number, kind="stable")
            pixels = pixels[np.searchsorted(number[pixels], 0) :]
            return pixels, number[pixels]

        return data.cut.get(part, cut)


class TiltedImagesUDF(BrightFieldUDF):
    """A UDF that adds the images of all beams."""

    default_plots: ClassVar[tuple[str, ...]] = ("phase", "image")

    def __init__(self, *, upsampling: int, **more: Any) -> None:
        super().__init__(upsampling=checks.integer("upsampling", upsampling, least=1), **more)

    def _shifted_sum(self, shifts: AnyArray, beams: Beams) -> ShiftedSum:
        """Return where beams with these shifts in nm are added."""
        nav = tuple(self.meta.dataset_shape.nav)
        return ShiftedSum.of_beams(shifts / beams.steps, nav, self.params.upsampling)

    def get_shared_task_data(self) -> Mapping[str, Any]:
        """Return the number of the beam of each pixel, and a cache for tiles."""
        pixels = self._beams().pixels
        number = np.full(tuple(self.meta.dataset_shape.sig), -1)
        number[tuple(pixels.T)] = np.arange(len(pixels))
        return {"number": number, "cut": OncePerProcess(2048)}

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        shape = tuple(self.params.upsampling * n for n in self.meta.dataset_shape.nav)
        one = self.buffer("single", shape, "float32", use="result_only")
        return {"image": one, "phase": one}

    def get_result_axes(self) -> Mapping[str, tuple[Axis, ...]]:
        n, scan = self.params.upsampling, self.meta.axes[:2]
        fine = tuple(replace(axis, name=f"fine_{axis.name}", scale=axis.scale / n) for axis in scan)
        return {"image": fine, "phase": fine}

    def get_result_units(self) -> Mapping[str, str | None]:
        return {"image": "", "phase": "rad"}

    def _images(self, image: AnyArray, beams: Beams, lens: Aberrations) -> dict[str, Any]:
        """Return the results `image` and `phase`."""
        known, (ny, nx) = ~np.isnan(image), image.shape
        dy, dx = (abs(step) / self.params.upsampling for step in beams.steps)
        # beyond the border is the mirror image: a jump there would be seen everywhere
        cosines = fft.dctn(np.where(known, image - 1, 0))
        qy, qx = np.arange(ny)[:, np.newaxis] / (2 * ny * dy), np.arange(nx) / (2 * nx * dx)
        qx = np.stack([qx, -qx] if lens.astigmatism else [qx])[:, np.newaxis]
        about = {"wavelength": beams.wavelength, "semiangle": beams.largest * beams.wavelength}
        transfer = np.nan_to_num(lens.contrast_transfer(qy, qx, **about))
        transfer *= np.sinc(dy * qy) ** 2 * np.sinc(dx * qx) ** 2  # of linear interpolation
        waves = cosines * transfer / (transfer**2 + DAMPING**2)
        phase = fft.idctn(waves.mean(axis=0))
        if lens.astigmatism:
            # a product of cosines is made of two waves, whose contrasts differ
            odd = np.roll((waves[0] - waves[1]) / 2, (-1, -1), (0, 1))
            phase -= fft.idstn(odd)
        phase = np.where(known, phase, np.nan)
        return {"image": self.with_mask(image, known), "phase": self.with_mask(phase, known)}
