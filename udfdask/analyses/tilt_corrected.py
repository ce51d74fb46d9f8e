"""Add the images of tilted beams while frames come in, with aberrations that are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from udfdask.analyses.aberrations import NUMBERS, Aberrations
from udfdask.analyses.bright_field import BATCH, Beams, BrightFieldUDF, cut
from udfdask.analyses.shifted_sum import ShiftedSum
from udfdask.base.once_per_process import OncePerProcess
from udfdask.errors import ArgumentTypeError
from udfdask.geometry.axes import Axis
from udfdask.geometry.units import Quantity, as_quantity, factor
from udfdask.masks import checks
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.promises import Promises
from udfdask.udfs.shared.built_in import check_flag


class TiltCorrectedUDF(BrightFieldUDF):
    """Add the images of all tilted beams without the shifts of known aberrations.

    Each frame is added to the result when it comes: snapshots show the image during the scan, and
    memory does not depend on the number of beams.

    Parameters
    ----------
    semiangle : float
        Convergence semiangle, the radius of the bright field, such as "20 mrad", or in pixels.
    defocus, astigmatism : float
        In nm, or such as "0.1 um"; the signs are those of the results of `ParallaxUDF`.
    astigmatism_angle, scan_rotation : float
        In degrees, as there.
    flip_y : bool
        Whether the y axis of the detector is flipped before the rotation.
    upsampling : int
        Pixels of the results for each scan position, along both axes.
    cy, cx, center : optional
        Center of the bright field, as for `RadialProfileUDF`.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If a parameter is wrong; in `run_udf`, if the scan is not 2-D or a line, axes have no units,
        the voltage is not known, or the bright field is larger than the frames.

    See Also
    --------
    ParallaxUDF : Measures the aberrations.

    Notes
    -----
    Result buffers `image` and `phase` as those of `ParallaxUDF` with ``bin=1``. Pixels outside of
    the bright field can be NaN. Leave out frames with NaN in it by a region of interest.

    Examples
    --------
    >>> import udfdask as ud
    >>> from udfdask.analyses import TiltCorrectedUDF
    >>> from udfdask.demo import PhaseObject
    >>> thin = PhaseObject(nav_shape=(8, 8), defocus=20)
    >>> udf = TiltCorrectedUDF("20 mrad", defocus=20, upsampling=2)
    >>> ud.run_udf(thin, udf, voltage=thin.voltage)["image"].shape
    (16, 16)
    """

    promises = Promises(adds_signal_parts=True, declares_once=True, merge_only_reads_src=True)

    def __init__(
        self,
        semiangle: Any,
        *,
        defocus: Any,
        astigmatism: Any = 0.0,
        astigmatism_angle: float = 0.0,
        scan_rotation: float = 0.0,
        flip_y: bool = False,
        upsampling: int = 1,
        cy: Any = None,
        cx: Any = None,
        center: Any = None,
    ) -> None:
        lengths = {"defocus": defocus, "astigmatism": astigmatism}
        angles = {"astigmatism_angle": astigmatism_angle, "scan_rotation": scan_rotation}
        lens = {name: _nanometers(name, value) for name, value in lengths.items()}
        for name, value in angles.items():
            lens[name] = checks.number(name, value, of="a number of degrees")
        flip_y = check_flag("flip_y", flip_y)
        place = {"cy": cy, "cx": cx, "center": center}
        super().__init__(semiangle=semiangle, upsampling=upsampling, **place, **lens, flip_y=flip_y)

    def _lens(self) -> Aberrations:
        return Aberrations(**{name: self.params[name] for name in (*NUMBERS, "flip_y")})

    def _shifted(self, beams: Beams) -> ShiftedSum:
        return self._shifted_sum(beams.angles @ self._lens().shift_matrix().T, beams)

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        shape = self._shifted(self._beams()).shape
        return {
            "total": self.buffer("single", shape, "float64", use="private"),
            "pattern": self.buffer("sig", (), "float64", use="private"),
            **self._image_buffers(),
        }

    def get_result_axes(self) -> Mapping[str, tuple[Axis, ...]]:
        """Name the axes of the images."""
        return self._image_axes()

    def get_result_units(self) -> Mapping[str, str | None]:
        """Name the units: images are relative to their mean."""
        return {"image": "", "phase": "rad"}

    def get_shared_task_data(self) -> Mapping[str, Any]:
        """Return where each pixel is added, and a cache for tiles."""
        beams = self._beams()
        shifted = self._shifted(beams)
        spread = shifted.spread.tocoo()
        entries = spread.data, spread.row, beams.pixels[spread.col]
        return {"entries": entries, "shifted": shifted, "cut": OncePerProcess(2048)}

    def process_tile(self, tile: Any) -> None:
        task, part, n = self.task_data, self.meta.sig_slice, len(self.task_data.shifted.places)
        key = part.origin, tuple(part.shape)
        used, spread = task.cut.get(key, lambda: cut(task.entries, part, n))
        self.results.pattern += tile.sum(axis=0, dtype=np.float64)
        flat = tile.reshape((len(tile), -1))
        for start in range(0, len(flat), BATCH):
            rows = slice(start, start + BATCH)
            footprints = flat[rows][:, used] @ spread
            task.shifted.add(self.results.total, self.meta.coordinates[rows], footprints)

    def merge(self, dest: Any, src: Any) -> None:
        dest.total[:] += src.total
        dest.pattern[:] += src.pattern

    def get_results(self) -> Mapping[str, Any]:
        beams = self._beams()
        known = self.meta.get_valid_nav_mask(full_nav=True)
        assert known is not None  # it is None only in process_*
        known = known.reshape(tuple(self.meta.dataset_shape.nav))
        image = np.full(self._fine_shape(), np.nan)
        if known.any():
            means = self.results.pattern[tuple(beams.pixels.T)] / known.sum()
            image = self._shifted(beams).relative(self.results.total, known, means)
        return self._images(image, beams, self._lens())


def _nanometers(name: str, given: Any) -> float:
    """Return a length in nm, from a number or such as "0.1 um"; raise if it is not one."""
    value = as_quantity(name, given)
    if isinstance(value, Quantity):
        try:
            return value.value * factor(value.unit, "nm")
        except ValueError as error:
            raise ArgumentTypeError(f"{name} must be a length, not {given!r}: {error}") from None
    return checks.number(name, value, of="a number of nm")
